// StepInfo: the objects that a step offers to its kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cohort/core/tensor.h"
#include "cohort/device/cancellation.h"
#include "cohort/device/client_id.h"
#include "cohort/device/closure_id.h"
#include "cohort/device/rendezvous.h"
#include "cohort/device/step_error.h"
#include "cohort/graph/graph.h"

namespace cohort {

class ClosureUpdates;

// Says which thread runs the kernels of a step.
enum class StepMode {
  // The thread that starts the step runs them. If the step waits for a value, the thread that brings the value
  // continues the step. If the device's compute thread has a team of several threads, an expensive kernel moves the
  // rest of the step to the compute thread. (A kernel is expensive if its inputs are large.)
  kInline,
  // As kInline, but an expensive kernel always moves the rest of the step, so that network threads stay free.
  kNetwork,
  // The compute thread runs all kernels. (Kernels that wait may end on other threads.)
  kDevice
};

// One call of a function. The body of a function may call another function, so a step may be inside several calls at
// once. Error messages list all of them. The code that runs the call owns the frame until the call has ended.
struct CallFrame {
  const std::string& function;
  const Node& caller;
  const CallFrame* outer;  // the call in whose body `caller` is; null if `caller` is not in a function
};

// The objects that a step offers to the kernels of one partition, or of a function's body. The code that starts the run
// owns it: the Executable, or the call of the function. The StepInfo and the objects that it points to must exist until
// the step has ended.
struct StepInfo {
  int64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  CancellationManager* cancellation = nullptr;
  std::span<Tensor> args;             // values of the _Arg nodes, by their attribute "index"
  std::span<Tensor> rets;             // _Retval nodes put their values here, by "index"
  const CallFrame* caller = nullptr;  // if this is a function's body: the call of the function; else null
  // True if this is a function's body and the node that calls the function changes variables. Then the step is inside
  // the update gate already when the call begins.
  bool in_update_gate = false;
  StepError* error = nullptr;          // set on a device with streams, else null
  const StepOrigin* origin = nullptr;  // the session that the step belongs to; null if there is no session
  ClosureId closure = {};              // the closure of which the step is an attempt
  StepTrace* trace = nullptr;          // collects what the nodes do; null if the step is not traced
  // If the step is of a closure: the updates that it has come to on this device. The functions that it calls share it.
  // The run of the step sets it.
  ClosureUpdates* closure_updates = nullptr;
};

}  // namespace cohort
