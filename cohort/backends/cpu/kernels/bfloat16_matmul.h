// Products of bfloat16 matrices by oneDNN. Making a primitive for given sizes costs up to 0.7 ms, so sizes that have
// not been seen lately go through one that takes its sizes at run time (up to 16% slower in what was measured);
// only sizes that come back get their own, in a small bounded cache. Internal to backends/cpu/kernels.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "cohort/backends/cpu/kernels/gemm.h"
#include "cohort/core/mutex.h"
#include "cohort/device/kernel.h"

namespace cohort::cpu {

// Thread-safe. One a kernel.
class Bfloat16MatMul {
 public:
  Bfloat16MatMul();
  ~Bfloat16MatMul();
  // False where oneDNN has no implementation worth its name on this processor; then nothing was computed.
  bool Run(KernelContext& ctx, const GemmShape& shape, const bfloat16* a, const bfloat16* b, bfloat16* c);
  // What Run uses for these sizes as oneDNN names it ("brg:avx512_core_bf16"), "" where it would return false. A size
  // that is 0 stands for one that is known only at run time.
  static std::string Implementation(const GemmShape& shape);

 private:
  struct Primitive;
  static constexpr size_t kCached = 8;  // sizes kept; the oldest goes first

  std::shared_ptr<Primitive> Find(const GemmShape& shape);
  // Whether `shape` is one of the last few that had no primitive of their own; it is from now on.
  bool SeenLately(const GemmShape& shape) COHORT_REQUIRES(mu_);

  Mutex mu_;
  std::shared_ptr<Primitive> any_size_ COHORT_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Primitive>> cache_ COHORT_GUARDED_BY(mu_);
  std::deque<GemmShape> lately_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cpu
