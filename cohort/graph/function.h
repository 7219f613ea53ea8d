// Function: a graph of its own with arguments and results, kept by name in a graph's library (Graph::DefineFunction)
// and in the library of its GraphDef.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

// Immutable once made, thread-safe.
class COHORT_EXPORT Function {
 public:
  // Throws InvalidArgumentError for a name that TensorFlow would not take (letters, digits and "_.-/" after a letter),
  // an argument without dtype, and results that are not of the body; and what adding the nodes throws.
  Function(std::string name, const std::vector<FunctionArg>& args, const FunctionBody& body);
  // Over a graph that is there already, whose `args` are Placeholders.
  Function(std::string name, std::unique_ptr<Graph> graph, std::vector<Output> args, std::vector<Output> results);

  const std::string& name() const { return name_; }
  const Graph& graph() const { return *graph_; }
  // Outputs of Placeholder nodes of graph(), which whoever runs the function feeds.
  const std::vector<Output>& args() const { return args_; }
  const std::vector<Output>& results() const { return results_; }
  // Whether a node has an effect or a state.
  bool is_stateful() const;
  // What was once made of the function, such as its gradient, under a key that its maker chooses; null where there is
  // none. Of two that are kept under one key the first stays.
  std::shared_ptr<const void> FindDerived(const std::string& key) const COHORT_EXCLUDES(mu_);
  void KeepDerived(const std::string& key, std::shared_ptr<const void> derived) const COHORT_EXCLUDES(mu_);
  // "add(x: float32[?], y: float32[]) -> (float32[?])".
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

// Adds the arguments of a function and what `body` makes of them to `graph`. Throws as Function's constructor; `name`
// is for the message.
COHORT_EXPORT void FillBody(const std::string& name, const std::vector<FunctionArg>& args, const FunctionBody& body,
                            Graph& graph, std::vector<Output>* arguments, std::vector<Output>* results);

// A FunctionDef, wire compatible with TensorFlow's. Shapes of arguments stand in its arg_attr "_output_shapes". A call
// runs what its results depend on and all nodes with an effect or a state, which are named as control outputs.
// Throws UnimplementedError for a function that calls others; a GraphDef has them all.
COHORT_EXPORT std::string SerializeFunction(const Function& function);
// Throws InvalidArgumentError for bytes that are no FunctionDef or one that Cohort cannot have (attributes that a call
// decides, functions as attributes, unknown dtypes), NotFoundError for unknown ops; messages name function and node.
COHORT_EXPORT std::shared_ptr<const Function> ParseFunction(std::string_view bytes);

}  // namespace cohort
