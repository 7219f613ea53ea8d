#include "cohort/backends/cuda/fake/fake_blas.h"

#include <cstring>
#include <vector>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

template <typename T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<bfloat16> {
  using Type = float;
};

// Computes all products of a call. It is launched with one thread.
template <typename T>
struct GemmOnHost {
  using W = typename SumOf<T>::Type;
  GemmSpec spec;
  GemmOperands operands;
  void* workspace;
  size_t workspace_bytes;
  double microseconds;

  void operator()(const Thread&) const {
    SpendFakeTime(microseconds);
    std::memset(workspace, 0x5a, workspace_bytes);
    for (int64_t batch = 0; batch < spec.batches; ++batch) {
      Multiply(static_cast<const T*>(operands.a) + batch * spec.step_a,
               static_cast<const T*>(operands.b) + batch * spec.step_b,
               static_cast<T*>(operands.c) + batch * spec.step_c);
    }
  }

 private:
  void Multiply(const T* a, const T* b, T* c) const {
    std::vector<W> right(static_cast<size_t>(spec.k * spec.n));
    for (int64_t p = 0; p < spec.k; ++p) {
      for (int64_t j = 0; j < spec.n; ++j) {
        right[static_cast<size_t>(p * spec.n + j)] =
            static_cast<W>(b[spec.transpose_b ? j * spec.k + p : p * spec.n + j]);
      }
    }
    std::vector<W> sums(static_cast<size_t>(spec.n));
    for (int64_t i = 0; i < spec.m; ++i) {
      sums.assign(sums.size(), W(0));
      for (int64_t p = 0; p < spec.k; ++p) {
        const W factor = static_cast<W>(a[spec.transpose_a ? p * spec.m + i : i * spec.k + p]);
        const W* row = right.data() + p * spec.n;
        for (int64_t j = 0; j < spec.n; ++j) sums[static_cast<size_t>(j)] += factor * row[j];
      }
      for (int64_t j = 0; j < spec.n; ++j) c[i * spec.n + j] = static_cast<T>(End(sums[static_cast<size_t>(j)], j));
    }
  }

  W End(W sum, int64_t column) const {
    if (spec.end == GemmEnd::kPlain) return sum;
    const W shifted = sum + static_cast<W>(static_cast<const T*>(operands.bias)[column]);
    return spec.end == GemmEnd::kBiasRelu && shifted < W(0) ? W(0) : shifted;
  }
};

}  // namespace

std::vector<Algorithm> FakeBlas::Candidates(int, const GemmSpec& spec, size_t most) {
  const bool has = spec.end == GemmEnd::kPlain || spec.dtype != DType::kFloat64;
  return has ? algorithms_.Candidates(most) : std::vector<Algorithm>();
}

std::optional<Algorithm> FakeBlas::Check(int card, const GemmSpec& spec, const Algorithm& algorithm) {
  return Candidates(card, spec, 1).empty() ? std::nullopt : algorithms_.Check(algorithm);
}

void FakeBlas::Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
                    const Algorithm& algorithm, void* workspace) {
  const bool has_bias = spec.end != GemmEnd::kPlain;
  if (Candidates(card, spec, 1).empty() || spec.m < 1 || spec.n < 1 || spec.k < 1 || spec.batches < 1 ||
      spec.batches > GemmSpec::kMostBatches || spec.alignment != AlignmentOf(operands) ||
      has_bias != (operands.bias != nullptr) || reinterpret_cast<uintptr_t>(workspace) % 256 != 0 ||
      workspace == nullptr) {
    throw InternalError(StrCat("[fake blas] expected a call that keeps the rules of blas.h; got a product of [", spec.m,
                               ",", spec.k, "] and [", spec.k, ",", spec.n, "], ", spec.batches, " times, alignment ",
                               spec.alignment, ", workspace ", workspace));
  }
  const double microseconds = algorithms_.Use(algorithm);
  if (has_bias) calls_with_end_.fetch_add(1);
  const auto enqueue = [&]<typename T>(T) {
    Launch(driver_, stream, LaunchSize(), GemmOnHost<T>{spec, operands, workspace, algorithm.workspace, microseconds});
  };
  switch (spec.dtype) {
    case DType::kFloat32: return enqueue(float());
    case DType::kFloat64: return enqueue(double());
    case DType::kBfloat16: return enqueue(bfloat16());
    default: throw InternalError(StrCat("[fake blas] expected float32, float64 or bfloat16; got ", spec.dtype));
  }
}

}  // namespace cohort::cuda
