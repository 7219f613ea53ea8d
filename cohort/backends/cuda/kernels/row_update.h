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
#include "cohort/core/tensor.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// Enqueues the sort of the positions of `indices` by row. `scratch` gets the memory of the keys. Throws
// InvalidArgumentError if there are too many rows and positions. Requires: `indices` has elements.
RowOrder EnqueueRowOrder(const CudaCall& call, const Tensor& indices, int64_t rows, Scratch& scratch);
// Returns how many bytes of scratch memory EnqueueRowOrder needs.
size_t RowOrderBytes(const Tensor& indices);

// The attribute, with the value true, of updates of rows whose indices come from a _SumRepeatedRows. The smallest
// number of their dtype then stands for no row, and the update passes over that position.
inline constexpr char kRowsMayBeNone[] = "_rows_may_be_none";
// Returns which indices are good for an update of rows, or for the check of its indices.
IndexRange RangeOfRows(const Node& node);

// Updates rows of a variable and of its slots. First calls `check` with the values, which throws if they do not fit.
// Then enqueues a check of the indices (int32 or int64) by `range`, and calls `change`, which enqueues the update: in
// place, in the memory of `values`, for the rows of `order`, and only if the word `error` is 0. Does nothing if there
// are no indices. Throws InvalidArgumentError for indices of another dtype, for variables without rows, and if a slot
// has another number of rows.
void UpdateRows(
    const CudaCall& call, const std::vector<VariableResource*>& variables, const Tensor& indices, IndexRange range,
    const std::function<void(std::span<Tensor> values, const RowOrder& order, const uint64_t* error)>& change,
    const std::function<void(std::span<const Tensor> values)>& check);

}  // namespace cohort::cuda
