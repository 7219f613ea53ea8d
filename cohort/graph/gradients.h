// Gradients: adds to the graph the nodes that compute d(sum of ys)/d(x).
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

// A gradient: dense, or rows of a larger tensor (TensorFlow's IndexedSlices), or none at all.
// Sparse: values [n, ...row] T, indices [n] int32 or int64 (may repeat), dense_shape [rank] int64 or int32.
struct COHORT_EXPORT Gradient {
  Output values;
  Output indices;
  Output dense_shape;
  // Of what Gradients gives as none: why it is, "'Mean:0' does not depend on variable 'b'".
  std::string why_none;

  Gradient() = default;
  Gradient(Output dense) : values(dense) {}
  Gradient(Output values, Output indices, Output dense_shape)
      : values(values), indices(indices), dense_shape(dense_shape) {}
  bool exists() const { return values.valid(); }
  bool is_sparse() const { return indices.valid(); }
};

// How graph/ turns sparse gradients into dense ones and sums them; ops/ registers the nodes it needs under fixed op
// names: AddN, UnsortedSegmentSum, ConcatV2, ZerosLike, OnesLike.
class COHORT_EXPORT GradientContext {
 public:
  GradientContext(const Node& node, std::vector<Gradient> output_gradients);

  const Node& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  Output input(int i) const { return node_.input(i); }
  Output output(int i) const { return node_.output(i); }
  bool has_grad(int i) const { return grads_.at(static_cast<size_t>(i)).exists(); }
  // Gradient of output i as a dense tensor; zeros where none flows.
  Output grad(int i = 0);
  const Gradient& raw_grad(int i = 0) const { return grads_.at(static_cast<size_t>(i)); }
  // Gradient of input i. Inputs that are not set get none (integers, shapes, axes).
  void SetInput(int i, Gradient gradient) { result_.at(static_cast<size_t>(i)) = std::move(gradient); }
  template <typename T>
  const T& attr(std::string_view name) const {
    return node_.attr<T>(name);
  }
  std::vector<Gradient> TakeResult() { return std::move(result_); }

 private:
  const Node& node_;
  std::vector<Gradient> grads_;
  std::vector<Gradient> result_;
};

// For each x the gradient of sum(ys) (or of sum(grad_ys * ys)); Gradient().exists() is false where no y depends on x.
// An x may be the handle of a variable: then all its reads and gathers count. `stop` are values whose inputs are not
// followed. Nodes are added beside the op that they differentiate (same device).
// Throws InvalidArgumentError for an op on the way that has neither a gradient nor the declaration that it has none.
COHORT_EXPORT std::vector<Gradient> Gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                              const std::vector<Output>& grad_ys = {},
                                              const std::vector<Output>& stop = {});

// The dense form; rows of a sparse gradient whose indices repeat are summed. Throws InvalidArgumentError, with the name
// of the variable, for a gradient that does not exist.
COHORT_EXPORT Output ToDense(const Gradient& gradient);

}  // namespace cohort
