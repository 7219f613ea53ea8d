// The kernel of ops::CrossHashed.
#include <farmhash.h>

#include <limits>
#include <vector>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/lookup.h"

namespace cohort {
namespace {

uint64_t ShiftMix(uint64_t value) { return value ^ (value >> 47); }

// Joins two fingerprints as TensorFlow's FingerprintCat64.
uint64_t Joined(uint64_t first, uint64_t second) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995u;
  uint64_t result = (first ^ kFactor ^ (ShiftMix(second * kFactor) * kFactor)) * kFactor;
  result = ShiftMix(result) * kFactor;
  return ShiftMix(result);
}

uint64_t FingerprintOf(const Tensor& input, int64_t i) {
  if (input.dtype() == DType::kInt64) return static_cast<uint64_t>(input.data<int64_t>()[i]);
  const std::string& text = input.data<std::string>()[i];
  return util::Fingerprint64(text.data(), text.size());
}

class SparseCrossKernel final : public OpKernel {
 public:
  explicit SparseCrossKernel(const KernelConstruction& c)
      : buckets_(static_cast<uint64_t>(c.attr<int64_t>("num_buckets"))),
        key_(static_cast<uint64_t>(c.attr<int64_t>("hash_key"))) {}

  void Compute(KernelContext& ctx) override {
    const int64_t rows = ctx.input(0).shape().dim(0);
    int64_t crosses = 1;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& shape = ctx.input(i).shape();
      if (shape.rank() != 2 || shape.dim(0) != rows) {
        throw InvalidArgumentError(StrCat("expected inputs [", rows, ", m]; got shape ", shape));
      }
      if (__builtin_mul_overflow(crosses, shape.dim(1), &crosses)) {
        throw InvalidArgumentError("expected fewer combinations; there are more than 2^63 in each row");
      }
    }
    int64_t count = 0;
    if (__builtin_mul_overflow(crosses, rows, &count)) {
      throw InvalidArgumentError("expected fewer combinations; there are more than 2^63");
    }
    int64_t* indices = ctx.AllocateOutput(0, Shape{count, 2}).data<int64_t>();
    int64_t* values = ctx.AllocateOutput(1, Shape{count}).data<int64_t>();
    int64_t* shape = ctx.AllocateOutput(2, Shape{2}).data<int64_t>();
    shape[0] = rows;
    shape[1] = rows > 0 ? crosses : 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t cross = 0; cross < crosses; ++cross) {
        *indices++ = row;
        *indices++ = cross;
        *values++ = HashOf(ctx, row, cross);
      }
    }
  }

 private:
  int64_t HashOf(const KernelContext& ctx, int64_t row, int64_t cross) const {
    std::vector<uint64_t> fingerprints(static_cast<size_t>(ctx.num_inputs()));
    for (int i = ctx.num_inputs() - 1; i >= 0; --i) {
      const int64_t columns = ctx.input(i).shape().dim(1);
      fingerprints[static_cast<size_t>(i)] = FingerprintOf(ctx.input(i), row * columns + cross % columns);
      cross /= columns;
    }
    uint64_t hash = key_;
    for (const uint64_t fingerprint : fingerprints) hash = Joined(hash, fingerprint);
    return static_cast<int64_t>(hash % (buckets_ > 0 ? buckets_ : std::numeric_limits<int64_t>::max()));
  }

  const uint64_t buckets_;  // 0: as many as there are numbers
  const uint64_t key_;
};

}  // namespace

void RegisterSparseCrossKernels(KernelRegistry& registry) {
  registry.Register<SparseCrossKernel>("SparseCross", "CPU");
}

}  // namespace cohort
