// StepInfo: the objects that a step offers to its kernels.
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

// Says which thread runs the kernels of a step.
enum class StepMode {
  // The thread that starts the step runs them. If the step waits for a value, the thread that brings the value
  // continues it. If the device's compute thread has a team of several threads, an expensive kernel moves the rest of
  // the step to the
  // compute thread.
  kInline,
  // The same, but an expensive kernel always moves the rest of the step, so that network threads stay free.
  kNetwork,
  // The compute thread runs all kernels.
  kDevice
};

// One call in the chain of function calls that a step is in. Error messages list this chain.
struct CallFrame {
  const std::string& function;
  const Node& caller;
  const CallFrame* outer;  // the call around this one; null if a node of a graph made this one
};

// The objects that a step offers to the kernels of one partition, or of a function's body. The run that starts the
// kernels owns it, and keeps it until the step has ended.
struct StepInfo {
  int64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  CancellationManager* cancellation = nullptr;
  std::span<Tensor> args;             // values of the _Arg nodes, by their attribute "index"
  std::span<Tensor> rets;             // _Retval nodes put their values here, by "index"
  const CallFrame* caller = nullptr;  // the call; null unless this is a function's body
  bool in_update_gate = false;  // the caller's step is inside the update gate; false unless this is a function's body
  StepError* error = nullptr;   // set on a device with streams, else null
  const StepOrigin* origin = nullptr;  // set in a step of a session, else null
};

}  // namespace cohort
