// How a kernel calls a function of the graph's library. runtime/ implements these interfaces.
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

// A function that is compiled for one device. Its FunctionCompiler owns it. Thread-safe.
class CompiledFunction {
 public:
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  virtual ~CompiledFunction() = default;
  virtual const std::string& name() const = 0;
  // Runs the function once, within the step of `ctx`. Calls `done` once, on any thread, perhaps before CallAsync
  // returns. `ctx` must stay valid until `done` is called. Arguments and results may lie in host memory or in device
  // memory. The function may write into an argument that nothing else holds. If a node of the function fails, the step
  // is cancelled, and the status names the function and the node. If the number of arguments is wrong, `done` gets an
  // InvalidArgumentError, and the step is not cancelled.
  virtual void CallAsync(const KernelContext& ctx, StepMode mode, std::vector<Tensor> args, Done done) = 0;
};

// Compiles functions for kernels, which call Compile in their constructors. The plan of a partition owns the compiler.
// The kernels inside of compiled functions use the same compiler. Not thread-safe.
class FunctionCompiler {
 public:
  virtual ~FunctionCompiler() = default;
  // Returns the compiled function `name`, which an attribute of `caller` names. Compiles each function once. The result
  // is valid as long as the compiler. Throws NotFoundError if the library lacks the function, InvalidArgumentError if
  // the function calls itself, and what the constructors of the function's kernels throw.
  virtual CompiledFunction& Compile(const Node& caller, const std::string& name) = 0;
};

}  // namespace cohort
