// Calling a function of the graph's library from a kernel. Implemented in runtime/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/device/step.h"
#include "cohort/graph/graph.h"

namespace cohort {

class KernelContext;

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
