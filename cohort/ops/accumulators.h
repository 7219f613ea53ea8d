// Accumulators: they collect gradients of several steps, and give out their mean when there are enough of them. They
// are TensorFlow's ConditionalAccumulator and SparseConditionalAccumulator. An accumulator lives in the ResourceManager
// of the task of its device, under its container and name.
//
// Each accumulator has a global step, which is 0 at first. A gradient that was computed at an earlier step is stale: it
// is dropped and counted, and the step that brought it goes on. A step that waits for gradients blocks no thread. Its
// wait ends with CancelledError if its session is closed, with DeadlineExceededError at its timeout, and with
// AbortedError if the accumulator's container is cleared.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

struct COHORT_EXPORT AccumulatorOptions {
  std::string shared_name = "";         // "": the name of the node
  std::string container = "";           // "": the default container
  std::string reduction_type = "MEAN";  // or "SUM"
  NodeName name = "";                   // "": "conditional_accumulator" or "sparse_conditional_accumulator"
};

// What both kinds of accumulators have. Cheap to copy. It can be used while its graph lives. Its nodes are placed
// beside the accumulator.
class COHORT_EXPORT Accumulator {
 public:
  Output handle() const { return handle_; }  // a resource scalar; of a sparse accumulator a string vector of 2 elements
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  Output NumAccumulated(const NodeName& name = "") const;  // int32 scalar: the gradients that are there now
  // Returns how many gradients were dropped because they were stale: int64 scalar. TensorFlow has no such op.
  Output NumStale(const NodeName& name = "") const;
  // Adds a node that sets the accumulator's global step to `new_global_step` (int64 scalar).
  Node* SetGlobalStep(const Operand& new_global_step, const NodeName& name = "") const;

 protected:
  Accumulator(Output handle, DType dtype, Shape shape);
  NodeBuilder Add(const std::string& op, const char* suffix, const NodeName& name) const;
  // The ops of a resource handle have names of their own.
  const char* prefix() const { return handle_.dtype() == DType::kResource ? "Resource" : ""; }

 private:
  Output handle_;
  DType dtype_;
  Shape shape_;
};

// Collects dense gradients. `dtype` is float32, float64 or bfloat16 (whose sum is kept in float32). Dimensions of
// `shape` may be unknown. Throws InvalidArgumentError for another dtype or reduction_type.
class COHORT_EXPORT ConditionalAccumulator final : public Accumulator {
 public:
  ConditionalAccumulator(Graph& graph, DType dtype, const Shape& shape = Shape::UnknownRank(),
                         const AccumulatorOptions& options = {});

  // Adds a node that adds `gradient`, which was computed at `local_step` (int64 scalar). The step fails with
  // InvalidArgumentError "Shape mismatch..." if the gradient does not fit.
  Node* ApplyGrad(Output gradient, const Operand& local_step = 0, const NodeName& name = "") const;
  // Returns the mean of all gradients as soon as there are at least `num_required` (int32 scalar, at least 1), or their
  // sum, by reduction_type. The accumulator is then empty, and its global step is 1 higher.
  Output TakeGrad(const Operand& num_required, const NodeName& name = "") const;
};

// Collects sparse gradients. As above, but the mean of a row is the sum of the rows of its index, divided by the number
// of gradients that held this index. Rows of one gradient that have the same index are added first.
class COHORT_EXPORT SparseConditionalAccumulator final : public Accumulator {
 public:
  // `shape` is that of the dense form of a gradient. A scalar shape says nothing.
  SparseConditionalAccumulator(Graph& graph, DType dtype, const Shape& shape = Shape::UnknownRank(),
                               const AccumulatorOptions& options = {});

  // Adds a node that adds `gradient`, which is sparse; its indices may be int32 or int64. Throws InvalidArgumentError
  // if the gradient is not sparse. The step fails with InvalidArgumentError if the gradient does not fit.
  Node* ApplyIndexedSlicesGrad(const Gradient& gradient, const Operand& local_step = 0,
                               const NodeName& name = "") const;
  // Returns the rows in the order of their indices (int64), each index once. dense_shape is int64; its first element is
  // -1 if `shape` does not tell it.
  Gradient TakeIndexedSlicesGrad(const Operand& num_required, const NodeName& name = "") const;
};

}  // namespace cohort::ops
