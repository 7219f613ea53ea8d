// Gradients(): adds the nodes that compute d(sum of ys)/d(x) to the graph.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

// The gradient of a value. It is dense, or sparse (some rows of a larger tensor; TensorFlow's IndexedSlices), or it
// does not exist. A sparse gradient has `values` of shape [n, ...row], `indices` of shape [n] (int32 or int64; an index
// may occur several times), and `dense_shape` of shape [rank] (int32 or int64).
struct COHORT_EXPORT Gradient {
  Output values;
  Output indices;
  Output dense_shape;
  // If Gradients() returns a gradient that does not exist: the reason, such as "the loss 'Mean:0' does not depend on
  // variable 'b'".
  std::string why_none;

  Gradient() = default;
  Gradient(Output dense) : values(dense) {}
  Gradient(Output values, Output indices, Output dense_shape)
      : values(values), indices(indices), dense_shape(dense_shape) {}
  bool exists() const { return values.valid(); }
  bool is_sparse() const { return indices.valid(); }
};

// The argument of an op's gradient function: the node, the gradients of its outputs, and a place for the gradients of
// its inputs. Gradients() makes a context for one call of a gradient function, on the thread that called Gradients().
// These ops must be registered: AddN, UnsortedSegmentSum, ConcatV2, ZerosLike, OnesLike. Gradients() and the context
// add nodes of these ops to sum gradients, to make them dense, and to make gradients of zeros and ones.
class COHORT_EXPORT GradientContext {
 public:
  GradientContext(const Node& node, std::vector<Gradient> output_gradients);

  const Node& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  Output input(int i) const { return node_.input(i); }
  Output output(int i) const { return node_.output(i); }
  bool has_grad(int i) const { return grads_.at(static_cast<size_t>(i)).exists(); }
  // Returns the gradient of output i as a dense tensor, or zeros if the output has no gradient. Adds nodes for this if
  // necessary.
  Output grad(int i = 0);
  // Returns the gradient of output i as it is: dense, sparse, or not existing.
  const Gradient& raw_grad(int i = 0) const { return grads_.at(static_cast<size_t>(i)); }
  // Sets the gradient of input i. An input that is not set gets no gradient. Inputs such as integers, shapes and axes
  // are not set.
  void SetInput(int i, Gradient gradient) { result_.at(static_cast<size_t>(i)) = std::move(gradient); }
  template <typename T>
  const T& attr(std::string_view name) const {
    return node_.attr<T>(name);
  }
  // Returns the gradients of the inputs. Gradients() calls it last.
  std::vector<Gradient> TakeResult() { return std::move(result_); }

 private:
  const Node& node_;
  std::vector<Gradient> grads_;
  std::vector<Gradient> result_;
};

// Returns the gradient of sum(ys) with respect to each x, or of sum(grad_ys * ys) if `grad_ys` is not empty. (An empty
// Output in `grad_ys` means ones.) Gradient::exists() is false for an x on which no y depends.
// - An x may be the handle of a variable. Then the gradient covers all reads and gathers of the variable.
// - No gradient flows back through values in `stop`.
// - The new nodes have the device of the node whose gradient they compute, and are colocated with the same nodes as
//   that node. The scopes of the calling thread for devices, colocation and control dependencies do not apply to them.
// - Throws InvalidArgumentError for an op between xs and ys that has neither a gradient function nor
//   OpDef::NotDifferentiable.
// - Throws InvalidArgumentError if there is no y, if a y is not floating, if the values are not of one graph, or if
//   `grad_ys` do not fit `ys`. Throws also what gradient functions throw.
COHORT_EXPORT std::vector<Gradient> Gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                              const std::vector<Output>& grad_ys = {},
                                              const std::vector<Output>& stop = {});

// Returns the gradient as a dense tensor. Sums rows that have the same index. Throws InvalidArgumentError, with the
// reason, if the gradient does not exist.
COHORT_EXPORT Output ToDense(const Gradient& gradient);

}  // namespace cohort
