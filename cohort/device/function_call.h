// Calling a function of the graph's library from a kernel. Implemented in runtime/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/graph/graph.h"

namespace cohort {

class KernelContext;

// Which thread runs the kernels of a step. kInline: the calling one (and, after a wait, the one that brings the value);
// a kernel that is expensive moves the rest of the step to the device's compute thread where that has a team of several
// threads. kNetwork: the same, but an expensive kernel always moves, so that network threads stay free. kDevice: the
// compute thread from the start.
enum class StepMode { kInline, kNetwork, kDevice };

// Who called the function whose body a step runs; for messages.
struct CallFrame {
  const std::string& function;
  const Node& caller;
  const CallFrame* outer;  // null where a graph called it
};

// The body of a function, made ready for one device. Thread-safe.
class CompiledFunction {
 public:
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  virtual ~CompiledFunction() = default;
  virtual const std::string& name() const = 0;
  // Runs the body once, within the step and for the kernel of `ctx`, which stays valid until `done` is called: once, on
  // any thread, perhaps before CallAsync returns. Arguments and results lie in host or device memory, whichever; the
  // body may write into an argument that nobody else holds. A failure has cancelled the step, and its status names the
  // function and the node in it.
  virtual void CallAsync(const KernelContext& ctx, StepMode mode, std::vector<Tensor> args, Done done) = 0;
};

// For the constructors of kernels.
class FunctionCompiler {
 public:
  virtual ~FunctionCompiler() = default;
  // The function `name`, which an attribute of `caller` names; made ready once, and valid as long as the compiler.
  // Throws NotFoundError where the library lacks it, InvalidArgumentError for one that calls itself, and what making
  // its kernels throws.
  virtual CompiledFunction& Compile(const Node& caller, const std::string& name) = 0;
};

}  // namespace cohort
