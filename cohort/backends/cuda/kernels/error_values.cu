#include "cohort/backends/cuda/kernels/error_values.cu.h"

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {
namespace {

struct FetchErrorKernel {
  const uint64_t* word;
  CheckedValues checked;
  uint64_t* out;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    constexpr int kPositionBits = 40;
    if (thread.first() != 0) return;
    const uint64_t error = *word;
    out[0] = error;
    if (error == 0) return;
    const auto check = static_cast<uint32_t>(error >> kPositionBits);
    const auto position = static_cast<int64_t>(error & ((uint64_t{1} << kPositionBits) - 1));
    for (int i = 0; i < checked.count; ++i) {
      const CheckedValues::Values& values = checked.values[i];
      if (values.check != check || position >= values.n) continue;
      out[1] = static_cast<uint64_t>(values.is_int64 ? static_cast<const int64_t*>(values.data)[position]
                                                     : int64_t{static_cast<const int32_t*>(values.data)[position]});
    }
  }
};

}  // namespace

void LaunchFetchError(Driver& driver, StreamHandle stream, const uint64_t* word, const CheckedValues& checked,
                      uint64_t* out) {
  Launch(driver, stream, LaunchSize(), FetchErrorKernel{word, checked, out});
}

}  // namespace cohort::cuda
