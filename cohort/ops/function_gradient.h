// Divides the body of a function, with the nodes of its gradient, into a forward and a backward part. Internal to the
// op modules.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cohort/graph/function.h"

namespace cohort::ops {

// Returns true if a gradient flows along values of the dtype. Returns false for handles of variables, although
// gradients are taken for them too.
inline bool CarriesGradient(DType dtype) { return IsFloating(dtype) || dtype == DType::kVariant; }

// Adds the nodes of the function's body to `graph`, with `args` for its arguments. Returns its results.
std::vector<Output> CopyBody(const Function& function, Graph& graph, const std::vector<Output>& args);

class DifferentiatedBody {
 public:
  // Differentiates the results `ys` (by number) of `function` for the arguments `xs`, which may include handles of
  // variables. If gradients need new functions, these are added to the library of `owner`, which must outlive this
  // object. Requires: `ys` and `xs` are not empty. Throws what Gradients throws.
  DifferentiatedBody(Graph& owner, const Function& function, const std::vector<int>& ys, const std::vector<int>& xs);

  // A value of the forward part that the backward part reads.
  struct Kept {
    Output value;  // belongs to a graph of this object; use only its dtype and shape
    int arg = -1;  // if the value is an argument of the function: its number; else -1
  };
  const std::vector<Kept>& kept() const { return kept_; }
  // Returns true if the results `ys` have a gradient for xs[i].
  bool has_gradient(size_t i) const { return gradients_[i].valid(); }

  // Adds the forward part to `graph`, with `args` for the function's arguments. Returns the function's results, and
  // after them the values of kept().
  std::vector<Output> AddForward(Graph& graph, const std::vector<Output>& args) const;
  // Adds the backward part to `graph`. `kept` are the values of kept(), and `y_gradients` the gradients of ys. Returns
  // dense gradients, one for each of xs. The Output is empty if has_gradient(i) is false.
  std::vector<Output> AddBackward(Graph& graph, const std::vector<Output>& kept,
                                  const std::vector<Output>& y_gradients) const;

 private:
  using Copies = std::unordered_map<const Node*, Node*>;
  void ChooseForward();
  void FindKept();
  void NeedForward(Node* node);
  // Returns true if the backward part has a copy of the node instead of a kept value. This is so for constants and
  // handles.
  static bool IsRepeated(const Node& node);

  std::unique_ptr<Graph> work_;
  std::vector<Output> args_;
  std::vector<Output> results_;
  std::vector<Output> y_gradients_;  // Placeholders for the gradients of ys
  std::vector<Output> gradients_;    // of xs
  std::vector<Node*> order_;         // all nodes
  std::unordered_set<const Node*> forward_;
  std::unordered_set<const Node*> backward_;  // nodes that the gradients need
  std::vector<Kept> kept_;
};

}  // namespace cohort::ops
