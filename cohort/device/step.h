// What kernels know of the step that they run in.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cohort/core/tensor.h"
#include "cohort/device/cancellation.h"
#include "cohort/device/client_id.h"
#include "cohort/device/rendezvous.h"
#include "cohort/device/step_error.h"
#include "cohort/graph/graph.h"

namespace cohort {

// Which thread runs the kernels of a step.
enum class StepMode {
  // The thread that starts the step, and after a wait the thread that brings the value. An expensive kernel moves the
  // rest of the step to the device's compute thread if that has a team of several threads.
  kInline,
  // The same, but an expensive kernel always moves, so that network threads stay free.
  kNetwork,
  // The compute thread from the start.
  kDevice
};

// The call of the function whose body a step runs, for messages.
struct CallFrame {
  const std::string& function;
  const Node& caller;
  const CallFrame* outer;  // the call around this one; null if a graph made this one
};

// What a step offers to the kernels of one partition. Its owner keeps it until the step has ended.
struct StepInfo {
  int64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  CancellationManager* cancellation = nullptr;
  std::span<Tensor> args;              // values of the partition's _Arg nodes, by their "index"
  std::span<Tensor> rets;              // its _Retval nodes put their values here
  const CallFrame* caller = nullptr;   // of a function's body
  bool in_update_gate = false;         // of a function's body: the caller's step is inside and stays there
  StepError* error = nullptr;          // on a device with streams
  const StepOrigin* origin = nullptr;  // of a session's step
};

}  // namespace cohort
