// Products of bfloat16 matrices by oneDNN, with a small bounded cache of primitives. Internal to kernels/cpu.
#pragma once

#include <deque>
#include <memory>

#include "cohort/core/mutex.h"
#include "cohort/device/kernel.h"
#include "cohort/kernels/cpu/gemm.h"

namespace cohort::cpu {

// Thread-safe. One a kernel.
class Bfloat16MatMul {
 public:
  Bfloat16MatMul();
  ~Bfloat16MatMul();
  // False where oneDNN has no implementation worth its name on this processor; then nothing was computed.
  bool Run(KernelContext& ctx, const GemmShape& shape, const bfloat16* a, const bfloat16* b, bfloat16* c);

 private:
  struct Primitive;
  static constexpr size_t kCached = 8;  // sizes kept; the oldest goes first

  std::shared_ptr<Primitive> Find(const GemmShape& shape);

  Mutex mu_;
  std::deque<std::shared_ptr<Primitive>> cache_ GUARDED_BY(mu_);
};

}  // namespace cohort::cpu
