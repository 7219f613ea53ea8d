// Products of row-major matrices, for element types and sizes for which oneDNN has no fast implementation. Internal to
// backends/cpu/kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/backends/cpu/kernels/wrapping.h"

namespace cohort::cpu {

// Sizes and layout of c[m,n] = a'[m,k] b'[k,n]. If transpose_a is true, `a` is stored as [k,m], and a' is its
// transpose. Otherwise a' is `a`. In the same way, if transpose_b is true, `b` is stored as [n,k].
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

// Computes c[rows, n] += a b. Element (i, p) of `a` is at a[i * row_step + p * k_step]. Four rows of c are computed
// together, so that each row of b is loaded once for them.
template <typename T, typename A>
struct GemmRowsBody {
  static constexpr int64_t kColumns = 256;  // a block of b, kDepth x kColumns, fits into the second-level cache
  static constexpr int64_t kDepth = 128;

  static COHORT_INLINE void Run(const T* a, int64_t row_step, int64_t k_step, const A* b, A* c, int64_t rows, int64_t n,
                                int64_t k) {
    for (int64_t j0 = 0; j0 < n; j0 += kColumns) {
      const int64_t width = n - j0 < kColumns ? n - j0 : kColumns;
      for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
        const int64_t depth = k - p0 < kDepth ? k - p0 : kDepth;
        const T* from = a + p0 * k_step;
        const A* b_block = b + p0 * n + j0;
        int64_t i = 0;
        for (; i + 4 <= rows; i += 4) {
          Rows<4>(from + i * row_step, row_step, k_step, b_block, c + i * n + j0, n, width, depth);
        }
        for (; i < rows; ++i) Rows<1>(from + i * row_step, row_step, k_step, b_block, c + i * n + j0, n, width, depth);
      }
    }
  }

 private:
  template <int kRows>
  static COHORT_INLINE void Rows(const T* a, int64_t row_step, int64_t k_step, const A* b, A* c, int64_t n,
                                 int64_t width, int64_t depth) {
    for (int64_t p = 0; p < depth; ++p) {
      A factor[kRows];
      for (int r = 0; r < kRows; ++r) factor[r] = static_cast<A>(a[r * row_step + p * k_step]);
      const A* row = b + p * n;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        for (int r = 0; r < kRows; ++r) {
          c[r * n + j] = Wrapping<A>::Add(c[r * n + j], Wrapping<A>::Mul(factor[r], row[j]));
        }
      }
    }
  }
};

// The matrix product for one element type. The constructor chooses the version of GemmRowsBody for this processor (see
// Widest). A kernel owns it. Thread-safe.
template <typename T>
class Gemm {
 public:
  using A = Wide<T>;

  // Computes c = a' b' (see GemmShape), on up to `threads` threads.
  void Run(const GemmShape& s, const T* a, const T* b, T* c, int threads) const {
    std::vector<A> packed;
    const A* right = PackB(s, b, packed);
    const int64_t row_step = s.transpose_a ? 1 : s.k, k_step = s.transpose_a ? s.m : 1;
    ForBlocks(
        s.m, threads,
        [&](int64_t begin, int64_t end) {
          const T* left = a + begin * row_step;
          const int64_t count = (end - begin) * s.n;
          if constexpr (std::is_same_v<A, T>) {
            std::fill(c + begin * s.n, c + end * s.n, T(0));
            rows_(left, row_step, k_step, right, c + begin * s.n, end - begin, s.n, s.k);
          } else {
            std::vector<A> sums(static_cast<size_t>(count), A(0));
            rows_(left, row_step, k_step, right, sums.data(), end - begin, s.n, s.k);
            for (int64_t i = 0; i < count; ++i) c[begin * s.n + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
          }
        },
        s.n * s.k);
  }

 private:
  // Returns b as [k,n] of type A. Returns `b` itself if it already has that form.
  static const A* PackB(const GemmShape& s, const T* b, std::vector<A>& packed) {
    if constexpr (std::is_same_v<A, T>) {
      if (!s.transpose_b) return b;
    }
    packed.resize(static_cast<size_t>(s.k * s.n));
    for (int64_t p = 0; p < s.k; ++p) {
      for (int64_t j = 0; j < s.n; ++j) {
        packed[static_cast<size_t>(p * s.n + j)] = static_cast<A>(s.transpose_b ? b[j * s.k + p] : b[p * s.n + j]);
      }
    }
    return packed.data();
  }

  void (*rows_)(const T*, int64_t, int64_t, const A*, A*, int64_t, int64_t, int64_t) = Widest<GemmRowsBody<T, A>>(true);
};

}  // namespace cohort::cpu
