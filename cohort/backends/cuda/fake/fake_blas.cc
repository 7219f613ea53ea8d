#include "cohort/backends/cuda/fake/fake_blas.h"

#include <cstring>
#include <vector>

#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr size_t kWorkspaceBytes = 1024;

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

  void operator()(const Thread&) const {
    std::memset(workspace, 0x5a, kWorkspaceBytes);
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

template <typename T>
void Enqueue(Driver& driver, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands, void* workspace) {
  Launch(driver, stream, LaunchSize(), GemmOnHost<T>{spec, operands, workspace});
}

}  // namespace

bool FakeBlas::Has(int, const GemmSpec& spec) { return spec.end == GemmEnd::kPlain || spec.dtype != DType::kFloat64; }

size_t FakeBlas::WorkspaceBytes(int card, const GemmSpec& spec) {
  if (!Has(card, spec)) throw UnimplementedError("[fake blas] expected a spec that it has; got a bias for float64");
  return kWorkspaceBytes;
}

void FakeBlas::Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
                    void* workspace) {
  const bool has_bias = spec.end != GemmEnd::kPlain;
  if (!Has(card, spec) || spec.m < 1 || spec.n < 1 || spec.k < 1 || spec.batches < 1 ||
      spec.alignment != AlignmentOf(operands) || has_bias != (operands.bias != nullptr) ||
      reinterpret_cast<uintptr_t>(workspace) % 256 != 0 || workspace == nullptr) {
    throw InternalError(StrCat("[fake blas] expected a call that keeps the rules of blas.h; got a product of [", spec.m,
                               ",", spec.k, "] and [", spec.k, ",", spec.n, "], ", spec.batches, " times, alignment ",
                               spec.alignment, ", workspace ", workspace));
  }
  if (has_bias) calls_with_end_.fetch_add(1);
  switch (spec.dtype) {
    case DType::kFloat32: return Enqueue<float>(driver_, stream, spec, operands, workspace);
    case DType::kFloat64: return Enqueue<double>(driver_, stream, spec, operands, workspace);
    case DType::kBfloat16: return Enqueue<bfloat16>(driver_, stream, spec, operands, workspace);
    default: throw InternalError(StrCat("[fake blas] expected float32, float64 or bfloat16; got ", spec.dtype));
  }
}

}  // namespace cohort::cuda
