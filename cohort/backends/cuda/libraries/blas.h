// Blas: products of matrices on a card, by a library of the vendor. The real one (cublas_lt.cc) opens cuBLASLt when it
// is first needed. The fake one (fake/fake_blas.h) computes on the host, so that tests need no card.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/libraries/algorithm.h"
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
  int64_t batches = 1;  // the number of products, at most kMostBatches; in each, the matrices are `step`s further on
  int64_t step_a = 0;   // elements
  int64_t step_b = 0;
  int64_t step_c = 0;
  GemmEnd end = GemmEnd::kPlain;
  bool tensor_float_32 = false;  // float32 only: products may be rounded to 10 bits of fraction, which is much faster
  int alignment = 0;             // bytes to which all addresses are aligned, at most 256; a power of two

  // cuBLASLt takes fewer than 2^16 products in one call.
  static constexpr int64_t kMostBatches = 32768;
  friend auto operator<=>(const GemmSpec&, const GemmSpec&) = default;  // NOLINT(modernize-use-nullptr)
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

// Returns the spec as a text for tables of algorithms: it says all that the choice of an algorithm depends on.
std::string CallText(const GemmSpec& spec);

// The products of one process. Each call has the same bits if it is made with the same algorithm on the same model of
// card. AlgorithmChooser chooses. Thread-safe. All functions throw FailedPreconditionError if the library cannot be
// opened.
class Blas {
 public:
  virtual ~Blas() = default;
  virtual LibraryName Name() = 0;
  // Returns at most `most` algorithms for the spec, in the order in which the library's heuristics, which measure
  // nothing, prefer them. Returns none if the library does not compute this spec. It computes every plain one.
  virtual std::vector<Algorithm> Candidates(int card, const GemmSpec& spec, size_t most) = 0;
  // Returns the algorithm with its workspace, or nothing if the library cannot compute the spec with it, or not with
  // the same bits each time.
  virtual std::optional<Algorithm> Check(int card, const GemmSpec& spec, const Algorithm& algorithm) = 0;
  // Enqueues the products. `algorithm` is one that Candidates or Check have returned for this spec. `workspace` has so
  // many bytes as it says, aligned to 256, and is free again, in the order of the stream, after this call. Throws
  // InternalError if the library fails.
  virtual void Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
                    const Algorithm& algorithm, void* workspace) = 0;
};

// Returns the library of this process. It exists as long as the process. Nothing is opened before its first use.
Blas& FindBlas();
// For tests: makes `blas` what FindBlas returns; null undoes it.
void InstallBlas(Blas* blas);
// Makes what FindBlas returns unless a test has installed another: cuBLASLt, or in a build without CUDA an object that
// throws UnimplementedError.
std::unique_ptr<Blas> MakeBlas();

}  // namespace cohort::cuda
