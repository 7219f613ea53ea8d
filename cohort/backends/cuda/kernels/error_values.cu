#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/kernels/error_values.cu.h"

namespace cohort::cuda {
namespace {

struct FetchErrorKernel {
  const uint64_t* word;
  uint64_t* out;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    if (thread.first() != 0) return;
    out[0] = word[0];
    out[1] = word[1];
  }
};

}  // namespace

void LaunchFetchError(Driver& driver, StreamHandle stream, const uint64_t* word, uint64_t* out) {
  Launch(driver, stream, LaunchSize(), FetchErrorKernel{word, out});
}

}  // namespace cohort::cuda
