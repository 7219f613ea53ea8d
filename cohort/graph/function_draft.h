// FunctionDraft: a function in the making, whose body may use values of the graph that will call it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/graph/function.h"

namespace cohort {

// An argument that can take `value`: its dtype and shape and, of a handle, what is known of the variable.
FunctionArg ArgumentLike(const Output& value, std::string name = "");
// The Placeholder of an argument.
Output AddArgument(Graph& body, const FunctionArg& arg);

// Of the graphs of `values` (at least one) that which is inside the others.
Graph& InnermostGraph(const std::vector<Output>& values);

// Belongs to the thread that made it. `outer` must outlive it.
class FunctionDraft {
 public:
  // Runs `body` on a new graph. Throws what graph/function.h says; `what` names the function in errors.
  FunctionDraft(Graph& outer, std::string what, const std::vector<FunctionArg>& args, const FunctionBody& body);

  const std::vector<Output>& results() const { return results_; }
  void AddResult(const Output& value) { results_.push_back(value); }
  // The values of `outer` that the body uses, each once.
  std::vector<Output> captures() const;
  // From now on these are the captures, in this order: arguments for those that the body does not use are added.
  // `values` must hold all that it uses.
  void SetCaptures(const std::vector<Output>& values);
  // The argument for a captured value.
  Output ArgumentOf(const Output& captured) { return body_->Capture(captured); }
  // The function, added to the library of `outer`: its arguments are the given ones, then one a captured value. Throws
  // AlreadyExistsError. Only once.
  std::shared_ptr<const Function> Finish(const std::string& name);

 private:
  Graph& outer_;
  const std::string what_;
  std::unique_ptr<Graph> body_;
  std::vector<Output> args_;
  std::vector<Output> results_;
  std::vector<Output> captures_;  // where SetCaptures has said so
};

}  // namespace cohort
