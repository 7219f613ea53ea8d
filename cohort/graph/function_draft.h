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

// Returns, of the graphs of `values`, the graph that is inside all others. Requires: `values` is not empty.
Graph& InnermostGraph(const std::vector<Output>& values);

// A captured value is a value of `outer` (or of a graph around it) that the body uses. Each captured value becomes a
// further argument of the function. Only the thread that made the draft may use it. `outer` must live longer than the
// draft. A draft ends with Finish(), or is destroyed without a function.
class FunctionDraft {
 public:
  // Calls `body` with a new graph. Throws as Function's constructor does. Error messages contain `what`.
  FunctionDraft(Graph& outer, std::string what, const std::vector<FunctionArg>& args, const FunctionBody& body);

  const std::vector<Output>& results() const { return results_; }
  void AddResult(const Output& value) { results_.push_back(value); }
  // Returns the captured values, each once.
  std::vector<Output> captures() const;
  // Makes `values` the captured values, in this order. Adds arguments for values that the body does not use. Requires:
  // `values` contains all values that the body has captured.
  void SetCaptures(const std::vector<Output>& values);
  // Returns the argument for a captured value.
  Output ArgumentOf(const Output& captured) { return body_->Capture(captured); }
  // Makes the function and adds it to the library of `outer`. Its arguments are the given arguments, and then one for
  // each captured value. Throws AlreadyExistsError if the name is taken. Requires: Finish has not been called.
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
