// LayerNorm and its gradient. A group of threads (row_groups.h) computes a row: first the sums, and then the results. A
// thread writes only elements that it alone reads, so results may overwrite the inputs. The gradients by scale and
// offset are sums over the rows (column_sums.h).
#include <cmath>

#include "cohort/backends/cuda/kernels/column_sums.h"
#include "cohort/backends/cuda/kernels/layer_norm.cu.h"
#include "cohort/backends/cuda/kernels/row_groups.h"

namespace cohort::cuda {
namespace {

// NormalizedRows with the types of its elements.
template <typename T>
struct TypedRows {
  using W = Wide<T>;
  const T* x;
  const W* scale;
  W* mean;
  W* inverse;
  int64_t rows;
  int64_t columns;

  explicit TypedRows(const NormalizedRows& from)
      : x(static_cast<const T*>(from.x)),
        scale(static_cast<const W*>(from.scale)),
        mean(static_cast<W*>(from.mean)),
        inverse(static_cast<W*>(from.inverse)),
        rows(from.rows),
        columns(from.columns) {}
};

template <typename T>
struct LayerNormKernel {
  static constexpr bool kWaits = true;
  using W = Wide<T>;
  TypedRows<T> all;
  const W* offset;
  W epsilon;
  T* out;
  uint32_t group;

  COHORT_KERNEL void operator()(const Thread& t) const {
    ForRows(t, all.rows, group, [&](const RowPart& part) { Row(t, part); });
  }

  COHORT_KERNEL void Row(const Thread& t, const RowPart& part) const {
    const T* x = all.x + part.row * all.columns;
    T* y = out + part.row * all.columns;
    const auto count = static_cast<W>(all.columns);
    W sum = 0;
    for (int64_t i = part.first; i < all.columns; i += part.size) sum += static_cast<W>(x[i]);
    const W mean = ReduceGroup(t, group, sum, JoinSum()) / count;
    W squares = 0;
    for (int64_t i = part.first; i < all.columns; i += part.size) {
      const W centred = static_cast<W>(x[i]) - mean;
      squares += centred * centred;
    }
    const W variance = ReduceGroup(t, group, squares, JoinSum()) / count;
    const W inverse = W(1) / std::sqrt(variance + epsilon);
    if (part.first == 0) {
      all.mean[part.row] = mean;
      all.inverse[part.row] = inverse;
    }
    for (int64_t i = part.first; i < all.columns; i += part.size) {
      y[i] = T((static_cast<W>(x[i]) - mean) * (inverse * all.scale[i]) + offset[i]);
    }
  }
};

// With g = dy * scale and normal = (x - mean) * inverse:
// dx = inverse * (g - mean(g) - normal * mean(g * normal)).
template <typename T>
struct LayerNormGradientKernel {
  static constexpr bool kWaits = true;
  using W = Wide<T>;
  TypedRows<T> all;
  const T* gradients;
  T* out;
  uint32_t group;

  COHORT_KERNEL void operator()(const Thread& t) const {
    ForRows(t, all.rows, group, [&](const RowPart& part) { Row(t, part); });
  }

  COHORT_KERNEL void Row(const Thread& t, const RowPart& part) const {
    const T* x = all.x + part.row * all.columns;
    const T* dy = gradients + part.row * all.columns;
    T* dx = out + part.row * all.columns;
    const W mean = all.mean[part.row], inverse = all.inverse[part.row];
    W sum = 0, products = 0;
    for (int64_t i = part.first; i < all.columns; i += part.size) {
      const W g = static_cast<W>(dy[i]) * all.scale[i];
      sum += g;
      products += g * ((static_cast<W>(x[i]) - mean) * inverse);
    }
    const auto count = static_cast<W>(all.columns);
    const W mean_g = ReduceGroup(t, group, sum, JoinSum()) / count;
    const W mean_product = ReduceGroup(t, group, products, JoinSum()) / count;
    for (int64_t i = part.first; i < all.columns; i += part.size) {
      const W g = static_cast<W>(dy[i]) * all.scale[i];
      const W normal = (static_cast<W>(x[i]) - mean) * inverse;
      dx[i] = T(inverse * (g - mean_g - normal * mean_product));
    }
  }
};

template <typename T>
struct LayerNormGradientSource {
  using W = Wide<T>;
  TypedRows<T> all;
  const T* dy;
  COHORT_KERNEL void Add(int64_t row, int64_t column, W (&sums)[2]) const {
    const int64_t at = row * all.columns + column;
    const auto gradient = static_cast<W>(dy[at]);
    sums[0] += gradient * ((static_cast<W>(all.x[at]) - all.mean[row]) * all.inverse[row]);
    sums[1] += gradient;
  }
};

template <typename W>
struct StoreLayerNormGradients {
  W* d_scale;
  W* d_offset;
  COHORT_KERNEL void Store(int64_t column, const double (&sums)[2]) const {
    d_scale[column] = static_cast<W>(sums[0]);
    d_offset[column] = static_cast<W>(sums[1]);
  }
};

}  // namespace

void LaunchLayerNorm(Driver& driver, StreamHandle stream, ElementType type, const NormalizedRows& rows,
                     const void* offset, float epsilon, void* y) {
  const RowGroups groups(rows.rows, rows.columns);
  ForFloating(type, "LayerNorm", [&]<typename T>(T) {
    using W = Wide<T>;
    Launch(driver, stream, groups.size,
           LayerNormKernel<T>{TypedRows<T>(rows), static_cast<const W*>(offset), static_cast<W>(epsilon),
                              static_cast<T*>(y), groups.group});
  });
}

size_t LayerNormBytes(int64_t rows, int64_t columns) { return ColumnSumsBytes<double>(ColumnSums(rows, columns), 2); }

void LaunchLayerNormSums(Driver& driver, StreamHandle stream, ElementType type, const NormalizedRows& rows,
                         const void* dy, void* d_scale, void* d_offset, void* scratch) {
  ForFloating(type, "LayerNormGrad", [&]<typename T>(T) {
    using W = Wide<T>;
    SumColumns<W, 2>(driver, stream, ColumnSums(rows.rows, rows.columns),
                     LayerNormGradientSource<T>{TypedRows<T>(rows), static_cast<const T*>(dy)},
                     StoreLayerNormGradients<W>{static_cast<W*>(d_scale), static_cast<W*>(d_offset)}, scratch);
  });
}

void LaunchLayerNormGradient(Driver& driver, StreamHandle stream, ElementType type, const NormalizedRows& rows,
                             const void* dy, void* dx) {
  const RowGroups groups(rows.rows, rows.columns);
  ForFloating(type, "LayerNormGrad", [&]<typename T>(T) {
    Launch(
        driver, stream, groups.size,
        LayerNormGradientKernel<T>{TypedRows<T>(rows), static_cast<const T*>(dy), static_cast<T*>(dx), groups.group});
  });
}

}  // namespace cohort::cuda
