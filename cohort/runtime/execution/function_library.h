// FunctionLibrary: compiles the functions that the graph of one executor calls, each once, for the executor's device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/device/function_call.h"
#include "cohort/graph/function.h"
#include "cohort/runtime/execution/executor.h"

namespace cohort {

// The plan of the executor owns it. The functions' own plans use it too. Only the thread that makes the executor may
// call Compile. Any thread may call the compiled functions.
class FunctionLibrary final : public FunctionCompiler {
 public:
  // Compiles functions of the library of `graph`. `graph` and `device` must live longer than this object.
  FunctionLibrary(const Graph& graph, Device& device);
  ~FunctionLibrary() override;

  CompiledFunction& Compile(const Node& caller, const std::string& name) override;
  // Returns whether the op of `node` changes a variable, or calls a function with such a node, directly or through
  // further functions.
  bool UpdatesVariable(const Node& node) const;
  // Does Executor::LookAt for the executors of all functions. Requires: no function is being compiled.
  void LookAt(std::vector<RunLook>* looks);

 private:
  class Body;

  const Graph& graph_;
  Device& device_;
  std::vector<std::string> compiling_;
  std::map<std::string, std::unique_ptr<Body>> bodies_;
};

// Returns the graph of a function's body, for an executor on `device`. It has _Arg and _Retval nodes. Nodes on which no
// result depends are left out, unless they are stateful. Throws InvalidArgumentError if a node requests another device.
std::unique_ptr<Graph> GraphOfBody(const Function& function, const Device& device);

}  // namespace cohort
