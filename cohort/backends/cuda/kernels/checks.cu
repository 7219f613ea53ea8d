#include "cohort/backends/cuda/dialect/report.h"
#include "cohort/backends/cuda/kernels/checks.cu.h"

namespace cohort::cuda {
namespace {

template <typename T>
struct CheckValues {
  const T* values;
  int64_t n;
  bool zero_is_bad;
  uint64_t* word;
  uint32_t check;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < n; i += t.step()) {
      if (zero_is_bad ? values[i] == T(0) : values[i] < T(0)) {
        ReportError(word, check, i, [this](int64_t p) { return values[p]; });
      }
    }
  }
};

}  // namespace

void LaunchValueCheck(Driver& driver, StreamHandle stream, ValueCheck what, ElementType type, const void* values,
                      int64_t n, uint64_t* word, uint32_t check) {
  ForIntegers(type, "a check of values", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(n),
           CheckValues<T>{static_cast<const T*>(values), n, what == ValueCheck::kNotZero, word, check});
  });
}

}  // namespace cohort::cuda
