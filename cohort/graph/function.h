// Function: a graph with arguments and results. The library of a graph keeps functions by name (Graph::DefineFunction),
// and so does the library of a GraphDef.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

// A graph that nodes of other graphs call. Never changes after its construction, except that derived objects may be
// added. All methods are thread-safe. Libraries and callers share it by shared_ptr.
class COHORT_EXPORT Function {
 public:
  // Makes a new graph and calls `body` to add its nodes. Throws InvalidArgumentError if TensorFlow would reject the
  // name (it allows letters, digits and "_.-/", and a letter or '_' at the beginning), if an argument has no dtype, or
  // if a result is not a value of the body. Throws also what `body` throws.
  Function(std::string name, const std::vector<FunctionArg>& args, const FunctionBody& body);
  // Takes over `graph`. Throws as the other constructor does, and InvalidArgumentError if one of `args` is not the
  // output of a Placeholder node of `graph`.
  Function(std::string name, std::unique_ptr<Graph> graph, std::vector<Output> args, std::vector<Output> results);

  const std::string& name() const { return name_; }
  const Graph& graph() const { return *graph_; }
  // Outputs of Placeholder nodes of graph(). The caller of the function feeds them.
  const std::vector<Output>& args() const { return args_; }
  const std::vector<Output>& results() const { return results_; }
  // Returns whether an op of the graph is stateful (OpDef::Stateful).
  bool is_stateful() const;
  // Objects that were computed from the function, such as its gradient. They are kept so that they are computed only
  // once. The code that computes an object chooses its key. FindDerived returns nullptr if there is no object for the
  // key. KeepDerived does nothing if there is one already.
  std::shared_ptr<const void> FindDerived(const std::string& key) const COHORT_EXCLUDES(mu_);
  void KeepDerived(const std::string& key, std::shared_ptr<const void> derived) const COHORT_EXCLUDES(mu_);
  // Returns, for example, "add(x: float32[?], y: float32[]) -> (float32[?])".
  std::string Signature() const;

 private:
  void Check() const;

  std::string name_;
  std::unique_ptr<Graph> graph_;
  std::vector<Output> args_;
  std::vector<Output> results_;
  mutable Mutex mu_;
  mutable std::map<std::string, std::shared_ptr<const void>> derived_ COHORT_GUARDED_BY(mu_);
};

// Adds Placeholder nodes for the arguments of a function to `graph`, puts their outputs into `arguments`, calls `body`,
// and puts the values that `body` returns into `results`. Throws InvalidArgumentError if an argument has no dtype or
// `body` is empty, and what `body` throws. Messages about arguments contain `name`.
COHORT_EXPORT void FillBody(const std::string& name, const std::vector<FunctionArg>& args, const FunctionBody& body,
                            Graph& graph, std::vector<Output>* arguments, std::vector<Output>* results);

// Returns the function as a serialized FunctionDef of TensorFlow. The attribute "_output_shapes" of an argument's
// arg_attr holds its shape. The FunctionDef names the stateful nodes as control outputs, so that a call in TensorFlow
// runs these nodes too, and not only those that the results need. Throws UnimplementedError if the function calls
// another function (SerializeGraphDef can write functions that call others).
COHORT_EXPORT std::string SerializeFunction(const Function& function);
// Reads a FunctionDef. Messages of errors name the function and the node. Throws InvalidArgumentError if the bytes are
// not a FunctionDef, or if the function has something that Cohort lacks: attributes for which each call gives a value
// (such as a dtype T), calls of functions that have such attributes, lists of functions, or unknown dtypes. Throws
// NotFoundError for an unknown op.
COHORT_EXPORT std::shared_ptr<const Function> ParseFunction(std::string_view bytes);

}  // namespace cohort
