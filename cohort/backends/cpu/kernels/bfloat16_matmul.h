// Products of bfloat16 matrices by oneDNN. It costs up to 0.7 ms to make a primitive for given sizes. So new sizes use
// a general primitive that takes its sizes at run time. In measurements it was up to 16% slower than a primitive for
// the given sizes. If sizes repeat, they get a primitive of their own, in a small cache. Internal to
// backends/cpu/kernels.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "cohort/backends/cpu/kernels/gemm.h"
#include "cohort/core/mutex.h"
#include "cohort/device/kernel.h"

namespace cohort::cpu {

// Computes the products of one kernel, which owns it. Thread-safe.
class Bfloat16MatMul {
 public:
  Bfloat16MatMul();
  ~Bfloat16MatMul();
  // Computes c = a b. Returns false, and computes nothing, if oneDNN has only a slow implementation on this processor.
  // Throws InternalError if oneDNN fails. Requires: all calls have the same transpose_a and the same transpose_b.
  bool Run(KernelContext& ctx, const GemmShape& shape, const bfloat16* a, const bfloat16* b, bfloat16* c);
  // Returns oneDNN's name of the implementation that Run uses for these sizes ("brg:avx512_core_bf16"), or "" if Run
  // would return false. A size of 0 means that it is known only at run time.
  static std::string Implementation(const GemmShape& shape);

 private:
  struct Primitive;
  static constexpr size_t kCached = 8;  // number of sizes with a primitive of their own; the oldest is dropped first

  std::shared_ptr<Primitive> Find(const GemmShape& shape);
  // Returns true if `shape` is among the last few shapes that had no primitive of their own. If not, adds it to them.
  bool SeenLately(const GemmShape& shape) COHORT_REQUIRES(mu_);

  Mutex mu_;
  std::shared_ptr<Primitive> any_size_ COHORT_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Primitive>> cache_ COHORT_GUARDED_BY(mu_);
  std::deque<GemmShape> lately_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cpu
