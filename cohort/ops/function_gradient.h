// The body of a function with the nodes of its gradient, cut into what runs forward and what runs backward. Internal to
// the op modules.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cohort/graph/function.h"

namespace cohort::ops {

// Whether a gradient flows along values of the dtype, apart from handles of variables.
inline bool CarriesGradient(DType dtype) { return IsFloating(dtype) || dtype == DType::kVariant; }

// Adds the nodes of the function's body to `graph`, with `args` for its arguments; returns its results.
std::vector<Output> CopyBody(const Function& function, Graph& graph, const std::vector<Output>& args);

class DifferentiatedBody {
 public:
  // Differentiates the results `ys` (by number) of `function` for the arguments `xs`, of which handles of variables may
  // be some. Functions that are made on the way go into the library of `owner`, which must outlive this. Neither list
  // is empty. Throws as Gradients.
  DifferentiatedBody(Graph& owner, const Function& function, const std::vector<int>& ys, const std::vector<int>& xs);

  // What the backward part reads of the forward one.
  struct Kept {
    Output value;  // of a graph of this object; for its dtype and shape
    int arg = -1;  // which argument of the function it is, or none
  };
  const std::vector<Kept>& kept() const { return kept_; }
  // Whether the results depend on xs[i] in a way that has a gradient.
  bool has_gradient(size_t i) const { return gradients_[i].valid(); }

  // Adds the forward part to `graph`: the function's results, then the values of kept().
  std::vector<Output> AddForward(Graph& graph, const std::vector<Output>& args) const;
  // Adds the backward part, given the values of kept() and the gradients of ys: dense gradients of xs, of which those
  // that there are not are empty.
  std::vector<Output> AddBackward(Graph& graph, const std::vector<Output>& kept,
                                  const std::vector<Output>& y_gradients) const;

 private:
  using Copies = std::unordered_map<const Node*, Node*>;
  void ChooseForward();
  void FindKept();
  void NeedForward(Node* node);
  // Whether a backward node reads it as its own copy.
  static bool IsRepeated(const Node& node);

  std::unique_ptr<Graph> work_;
  std::vector<Output> args_;
  std::vector<Output> results_;
  std::vector<Output> y_gradients_;  // Placeholders
  std::vector<Output> gradients_;    // of xs
  std::vector<Node*> order_;         // all nodes
  std::unordered_set<const Node*> forward_;
  std::unordered_set<const Node*> backward_;  // that the gradients need
  std::vector<Kept> kept_;
};

}  // namespace cohort::ops
