// UpdateRows: enqueues work that updates rows of variables.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/cuda/kernels/gather.cu.h"
#include "cohort/backends/cuda/kernels/row_order.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/core/tensor.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// Enqueues the sort of the positions of `indices` by row. `scratch` gets the memory of the keys. Throws
// InvalidArgumentError if there are too many rows and positions. Requires: `indices` has elements.
RowOrder EnqueueRowOrder(const CudaCall& call, const Tensor& indices, int64_t rows, Scratch& scratch);
// Returns how many bytes of scratch memory EnqueueRowOrder needs.
size_t RowOrderBytes(const Tensor& indices);

// Returns which indices are good for an update of rows, or for the check of its indices (graph/rows_may_be_none.h).
IndexRange RangeOfRows(const Node& node);

// A variable with its slots, and the indices (int32 or int64) of the rows of theirs that change.
struct RowUpdate {
  std::vector<VariableResource*> variables;
  const Tensor* indices;
};
// What is known of a RowUpdate when the change is enqueued.
struct RowChange {
  size_t update;             // its number
  std::span<Tensor> values;  // of its variables: the change is made in place, in their memory
  ChangedRows rows;
};

// Updates rows of different variables, together. First calls `check` for each update with its values, which throws if
// they do not fit. Then enqueues a check of all indices by `range`, and calls `change` once, which enqueues all updates
// that have indices, to be made only if the word `error` is 0. With the range kRowsOrNone no index is there twice, and
// the rows have no order; otherwise they have one. Throws InvalidArgumentError for indices of another dtype, for
// variables without rows, and if a slot has another number of rows.
void UpdateRows(const CudaCall& call, const std::vector<RowUpdate>& updates, IndexRange range,
                const std::function<void(std::span<const RowChange> changes, const uint64_t* error)>& change,
                const std::function<void(size_t update, std::span<const Tensor> values)>& check);

}  // namespace cohort::cuda
