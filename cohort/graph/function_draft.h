// FunctionDraft: a function that is being made. Its body may use values of the graph that will call it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/graph/function.h"

namespace cohort {

// Returns the description of an argument that can take `value`: its dtype and shape. For a handle it has dtype and
// shape of the variable too.
FunctionArg ArgumentLike(const Output& value, std::string name = "");
// Adds the Placeholder of an argument to `body` and returns its output.
Output AddArgument(Graph& body, const FunctionArg& arg);

// Returns the innermost of the graphs to which `values` belong: it is inside each of the other graphs
// (Graph::IsInside). If all values are of one graph, returns this graph. Requires: `values` is not empty, and there is
// an innermost graph.
Graph& InnermostGraph(const std::vector<Output>& values);

// A function that is being made. Its body may use values of the graph `outer`, which will call the function, or of a
// graph around `outer`. Such a value is captured: it becomes a further argument of the function. (A constant is copied
// into the body instead.) Only the thread that made the draft may use it. `outer` must live longer than the draft.
// Finish() makes the function; a draft that is destroyed without Finish() makes none.
class FunctionDraft {
 public:
  // Makes a new graph and calls `body` to add its nodes. Throws as FillBody does. Error messages contain `what`.
  FunctionDraft(Graph& outer, std::string what, const std::vector<FunctionArg>& args, const FunctionBody& body);

  const std::vector<Output>& results() const { return results_; }
  void AddResult(const Output& value) { results_.push_back(value); }
  // Returns the captured values, each once.
  std::vector<Output> captures() const;
  // Makes `values` the captured values, in this order. Adds arguments for values that the body does not use. Throws
  // InternalError for a value that is not of `outer` or of a graph around it. Requires: `values` contains all values
  // that the body has captured.
  void SetCaptures(const std::vector<Output>& values);
  // Returns the argument for a captured value. Captures the value if the body does not use it yet.
  Output ArgumentOf(const Output& captured) { return body_->Capture(captured); }
  // Makes the function and adds it to the library of `outer`. Its arguments are those that the constructor was given,
  // and then one for each captured value. Throws AlreadyExistsError if the name is taken, and as Function's constructor
  // does. Finish may be called only once, even if it throws.
  std::shared_ptr<const Function> Finish(const std::string& name);

 private:
  Graph& outer_;
  const std::string what_;
  std::unique_ptr<Graph> body_;
  std::vector<Output> args_;
  std::vector<Output> results_;
  std::vector<Output> captures_;  // set by SetCaptures; else empty
};

}  // namespace cohort
