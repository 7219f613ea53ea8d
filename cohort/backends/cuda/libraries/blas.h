// Blas: products of matrices on a card, by a library of the vendor. The real one (cublas_lt.cc) opens cuBLASLt when it
// is first needed. The fake one (fake/fake_blas.h) computes on the host, so that tests need no card.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cohort/backends/cuda/driver.h"
#include "cohort/core/dtype.h"

namespace cohort::cuda {

// What happens to the sums before they are written.
enum class GemmEnd {
  kPlain,
  kBias,      // a vector of n elements is added to each row
  kBiasRelu,  // and negative elements then become 0
};

// Sizes and layout of c[m,n] = a'[m,k] b'[k,n], with row-major matrices. If transpose_a is true, `a` is stored as
// [k,m], and a' is its transpose. Otherwise a' is `a`. In the same way, if transpose_b is true, `b` is stored as [n,k].
struct GemmSpec {
  DType dtype = DType::kFloat32;  // float32, float64 or bfloat16; sums of bfloat16 are float32
  int64_t m = 0;                  // all sizes are at least 1
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t batches = 1;  // the number of products; for each, the matrices are this many elements after those before
  int64_t step_a = 0;
  int64_t step_b = 0;
  int64_t step_c = 0;
  GemmEnd end = GemmEnd::kPlain;
  bool tensor_float_32 = false;  // float32 only: products may be rounded to 10 bits of fraction, which is much faster
  int alignment = 0;             // bytes to which all addresses are aligned, at most 256; a power of two
  friend auto operator<=>(const GemmSpec&, const GemmSpec&) = default;
};

// The matrices of a call, in the card's memory.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // only if the spec's end has one
  void* c = nullptr;
};

// Returns the largest power of two, up to 256, to which all of the operands are aligned. A null does not count.
int AlignmentOf(const GemmOperands& operands);

// The products of one process. Choices of algorithms are made once for each spec, from the library's heuristics and not
// from times, and kept; so the same call gives the same bits. Thread-safe.
class Blas {
 public:
  virtual ~Blas() = default;
  // Returns whether the library computes this spec. It computes every plain one. Throws FailedPreconditionError if the
  // library cannot be opened.
  virtual bool Has(int card, const GemmSpec& spec) = 0;
  // Returns how many bytes of scratch memory the call needs; 0 is possible. Throws as Has does, and UnimplementedError
  // if Has returns false.
  virtual size_t WorkspaceBytes(int card, const GemmSpec& spec) = 0;
  // Enqueues the products. `workspace` has WorkspaceBytes bytes, aligned to 256, and is free again, in the order of the
  // stream, after this call. Throws as WorkspaceBytes does, and InternalError if the library fails.
  virtual void Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
                    void* workspace) = 0;
};

// Returns the library of this process. It exists as long as the process. Nothing is opened before its first use.
Blas& FindBlas();
// For tests: makes `blas` what FindBlas returns; null undoes it.
void InstallBlas(Blas* blas);
// Makes what FindBlas returns unless a test has installed another: cuBLASLt, or in a build without CUDA an object that
// throws UnimplementedError.
std::unique_ptr<Blas> MakeBlas();

}  // namespace cohort::cuda
