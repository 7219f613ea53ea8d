// Kernels that take and put slices by coordinates: GatherNd, ScatterNd and the scatters into a copy of a tensor. All
// coordinates are checked before anything is written.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/wrapping.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/nd_index.h"

namespace cohort {
namespace {

template <typename Index>
std::vector<int64_t> CheckedRows(const Tensor& indices, const Shape& whole, const ops::NdIndex& nd) {
  const Index* values = indices.data<Index>();
  std::vector<int64_t> rows(static_cast<size_t>(nd.count));
  for (int64_t i = 0; i < nd.count; ++i) {
    int64_t row = 0;
    for (int d = 0; d < nd.depth; ++d) {
      const int64_t at = i * nd.depth + d;
      const auto value = static_cast<int64_t>(values[at]);
      if (value < 0 || value >= whole.dim(d)) {
        throw InvalidArgumentError(ops::DescribeNdIndex(at, value, indices.shape(), whole));
      }
      row = row * whole.dim(d) + value;
    }
    rows[static_cast<size_t>(i)] = row;
  }
  return rows;
}

// The rows of a tensor of shape `whole` that the coordinates select.
std::vector<int64_t> RowsOf(const Tensor& indices, const Shape& whole, const ops::NdIndex& nd) {
  return indices.dtype() == DType::kInt32 ? CheckedRows<int32_t>(indices, whole, nd)
                                          : CheckedRows<int64_t>(indices, whole, nd);
}

void GatherNd(KernelContext& ctx) {
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Shape& whole = params.shape();
  const Shape& x = indices.shape();
  const ops::NdIndex nd = ops::NdIndexOf(x, whole);
  Tensor& out = ctx.AllocateOutput(0, x.Sub(0, x.rank() - 1).Concat(whole.Sub(nd.depth, whole.rank())));
  const std::vector<int64_t> rows = RowsOf(indices, whole, nd);
  if (out.num_elements() == 0) return;
  cpu::ForElements(params.dtype(), "GatherNd", [&]<typename T>(T) {
    const T* from = static_cast<const T*>(params.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    cpu::ForBlocks(
        nd.count, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const T* row = from + rows[static_cast<size_t>(i)] * nd.columns;
            std::copy(row, row + nd.columns, to + i * nd.columns);
          }
        },
        nd.columns);
    return 0;
  });
}

// Changes the rows of `out` one after the other, in the order of the updates.
template <typename T, typename Fn>
void ChangeRows(const std::vector<int64_t>& rows, const ops::NdIndex& nd, const Tensor& updates, Tensor& out,
                const Fn& fn) {
  const T* from = static_cast<const T*>(updates.raw_data());
  T* to = static_cast<T*>(out.raw_data());
  for (int64_t i = 0; i < nd.count; ++i) {
    T* row = to + rows[static_cast<size_t>(i)] * nd.columns;
    for (int64_t c = 0; c < nd.columns; ++c) row[c] = fn(row[c], from[i * nd.columns + c]);
  }
}

void AddRows(const std::vector<int64_t>& rows, const ops::NdIndex& nd, const Tensor& updates, bool negative,
             Tensor& out) {
  cpu::ForAllNumbers(out.dtype(), "a scatter", [&]<typename T>(T) {
    using W = cpu::Wide<T>;
    ChangeRows<T>(rows, nd, updates, out, [negative](T old, T value) {
      const W a = static_cast<W>(old), b = static_cast<W>(value);
      return static_cast<T>(negative ? cpu::Wrapping<W>::Sub(a, b) : cpu::Wrapping<W>::Add(a, b));
    });
    return 0;
  });
}

void ScatterNd(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& updates = ctx.input(1);
  const Shape whole = ops::ShapeOfScatterNd(ctx.input(2));
  ops::CheckNdUpdates(indices.shape(), updates.shape(), whole);
  const ops::NdIndex nd = ops::NdIndexOf(indices.shape(), whole);
  Tensor& out = ctx.AllocateOutput(0, whole);
  const std::vector<int64_t> rows = RowsOf(indices, whole, nd);
  if (out.num_elements() == 0) return;
  std::fill_n(static_cast<char*>(out.raw_data()), out.bytes(), char{0});
  AddRows(rows, nd, updates, false, out);
}

enum class Scatter { kPut, kAdd, kSub };

template <Scatter kScatter>
void TensorScatter(KernelContext& ctx) {
  const Tensor tensor = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  const Shape whole = tensor.shape();
  ops::CheckNdUpdates(indices.shape(), updates.shape(), whole);
  const ops::NdIndex nd = ops::NdIndexOf(indices.shape(), whole);
  const std::vector<int64_t> rows = RowsOf(indices, whole, nd);
  Tensor& out = ctx.AllocateOutput(0, whole);
  cpu::ForElements(out.dtype(), "a scatter", [&]<typename T>(T) {
    const T* from = static_cast<const T*>(tensor.raw_data());
    std::copy(from, from + tensor.num_elements(), static_cast<T*>(out.raw_data()));
    if (kScatter == Scatter::kPut)
      ChangeRows<T>(rows, nd, updates, out, [](const T&, const T& value) { return value; });
    return 0;
  });
  if (kScatter != Scatter::kPut) AddRows(rows, nd, updates, kScatter == Scatter::kSub, out);
}

// Returns the indices as [n, rank].
Tensor AsCoordinates(const Tensor& indices, int rank) {
  const Shape& shape = indices.shape();
  const int64_t width = shape.rank() == 2 ? shape.dim(1) : 1;
  if (width != rank || shape.rank() > 2) {
    throw InvalidArgumentError(
        StrCat("expected sparse_indices with ", rank, " numbers each, for that rank; got the shape ", shape));
  }
  return indices.Reshaped(Shape{shape.rank() == 0 ? 1 : shape.dim(0), width});
}

void SparseToDense(KernelContext& ctx) {
  const Shape whole = ops::ShapeOfScatterNd(ctx.input(1));
  const Tensor indices = AsCoordinates(ctx.input(0), whole.rank());
  const Tensor& values = ctx.input(2);
  const Tensor& default_value = ctx.input(3);
  Tensor& out = ctx.AllocateOutput(0, whole);  // first: it checks the number of elements
  const std::vector<int64_t> places = RowsOf(indices, whole, ops::NdIndexOf(indices.shape(), whole));
  if (default_value.num_elements() != 1) {
    throw InvalidArgumentError(StrCat("expected one default_value; got the shape ", default_value.shape()));
  }
  const bool one = values.shape().rank() == 0;
  if (!one && values.num_elements() != static_cast<int64_t>(places.size())) {
    throw InvalidArgumentError(
        StrCat("expected one value, or ", places.size(), " as there are indices; got the shape ", values.shape()));
  }
  for (size_t i = 1; ctx.node().attr<bool>("validate_indices") && i < places.size(); ++i) {
    if (places[i] <= places[i - 1]) {
      throw InvalidArgumentError(StrCat("expected sparse_indices in lexicographic order, without repetition; row ", i,
                                        places[i] == places[i - 1] ? " repeats" : " comes before", " row ", i - 1));
    }
  }
  cpu::ForElements(out.dtype(), "SparseToDense", [&]<typename T>(T) {
    T* to = static_cast<T*>(out.raw_data());
    std::fill(to, to + out.num_elements(), *static_cast<const T*>(default_value.raw_data()));
    const T* from = static_cast<const T*>(values.raw_data());
    for (size_t i = 0; i < places.size(); ++i) to[places[i]] = from[one ? 0 : i];
    return 0;
  });
}

}  // namespace

void RegisterGatherNdKernels(KernelRegistry& registry) {
  registry.RegisterFn("GatherNd", "CPU", GatherNd);
  registry.RegisterFn("ScatterNd", "CPU", ScatterNd);
  registry.RegisterFn("SparseToDense", "CPU", SparseToDense);
  registry.RegisterFn("TensorScatterUpdate", "CPU", TensorScatter<Scatter::kPut>);
  registry.RegisterFn("TensorScatterAdd", "CPU", TensorScatter<Scatter::kAdd>);
  registry.RegisterFn("TensorScatterSub", "CPU", TensorScatter<Scatter::kSub>);
}

}  // namespace cohort
