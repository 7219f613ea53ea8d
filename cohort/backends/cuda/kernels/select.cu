#include "cohort/backends/cuda/kernels/select.cu.h"

namespace cohort::cuda {
namespace {

template <typename T>
struct SelectKernel {
  SelectArgs args;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < args.n; i += thread.step()) {
      int64_t at[3] = {i * args.steps[0], i * args.steps[1], i * args.steps[2]};
      if (args.broadcasts) Locate(args.dims, i, at);
      Put(i, at[0], at[1], at[2]);
    }
  }

  COHORT_KERNEL void Put(int64_t i, int64_t c, int64_t t, int64_t e) const {
    static_cast<T*>(args.out)[i] =
        args.condition[c] ? static_cast<const T*>(args.t)[t] : static_cast<const T*>(args.e)[e];
  }
};

template <typename T>
struct ClipKernel {
  ClipArgs args;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < args.n; i += thread.step()) {
      const auto x = static_cast<Wide<T>>(static_cast<const T*>(args.x)[i]);
      const auto low = static_cast<Wide<T>>(static_cast<const T*>(args.low)[i * args.low_step]);
      const auto high = static_cast<Wide<T>>(static_cast<const T*>(args.high)[i * args.high_step]);
      const Wide<T> raised = x < low ? low : x;
      static_cast<T*>(args.out)[i] = static_cast<T>(raised > high ? high : raised);
    }
  }
};

}  // namespace

void LaunchSelect(Driver& driver, StreamHandle stream, size_t element_bytes, const SelectArgs& args) {
  ForSizes(element_bytes, "Select",
           [&]<typename T>(T) { Launch(driver, stream, SizeFor(args.n), SelectKernel<T>{args}); });
}

void LaunchClip(Driver& driver, StreamHandle stream, ElementType type, const ClipArgs& args) {
  ForNumbers(type, "ClipByValue", [&]<typename T>(T) { Launch(driver, stream, SizeFor(args.n), ClipKernel<T>{args}); });
}

}  // namespace cohort::cuda
