// FunctionLibrary: the functions that the graph of one executor calls, compiled for its device, each once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/device/function_call.h"
#include "cohort/graph/function.h"
#include "cohort/runtime/execution/executor.h"

namespace cohort {

// What it has compiled may be called by any threads; compiling is for the one that makes the executor.
class FunctionLibrary final : public FunctionCompiler {
 public:
  // Functions come from the library of `graph`. Both must outlive it.
  FunctionLibrary(const Graph& graph, Device& device);
  ~FunctionLibrary() override;

  CompiledFunction& Compile(const Node& caller, const std::string& name) override;
  // Whether `node` changes a variable, itself or in a function that it calls.
  bool UpdatesVariable(const Node& node) const;

 private:
  class Body;

  const Graph& graph_;
  Device& device_;
  std::vector<std::string> compiling_;
  std::map<std::string, std::unique_ptr<Body>> bodies_;
};

// The body as a graph for an executor: _Arg and _Retval nodes, everything on the caller's device; what no result
// depends on is left out unless it has an effect or a state. Throws InvalidArgumentError for a node that asks for
// another device.
std::unique_ptr<Graph> GraphOfBody(const Function& function, const Device& device);

}  // namespace cohort
