// Function: a graph of its own with arguments and results, kept by name in a graph's library (Graph::DefineFunction)
// and in the library of its GraphDef.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Immutable once made, thread-safe.
class Function {
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
  // "add(x: float32[?], y: float32[]) -> (float32[?])".
  std::string Signature() const;

 private:
  void Check() const;

  std::string name_;
  std::unique_ptr<Graph> graph_;
  std::vector<Output> args_;
  std::vector<Output> results_;
};

// A FunctionDef, wire compatible with TensorFlow's. Shapes of arguments stand in its arg_attr "_output_shapes". Nodes
// on which no result depends are kept; they are not run.
std::string SerializeFunction(const Function& function);
// Throws InvalidArgumentError for bytes that are no FunctionDef or one that Cohort cannot have (attributes that a call
// decides, functions as attributes, unknown dtypes), NotFoundError for unknown ops; messages name function and node.
std::shared_ptr<const Function> ParseFunction(std::string_view bytes);

}  // namespace cohort
