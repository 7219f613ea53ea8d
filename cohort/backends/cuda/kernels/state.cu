#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/state.cu.h"

namespace cohort::cuda {
namespace {

template <typename T, bool kSubtract>
struct ChangeKernel {
  UpdateArgs args;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const bool keeps = args.error != nullptr && *args.error != 0;
    const auto* old = static_cast<const T*>(args.old);
    const auto* value = static_cast<const T*>(args.value);
    auto* out = static_cast<T*>(args.out);
    if (keeps && old == out) return;
    for (int64_t i = t.first(); i < args.n; i += t.step()) {
      const auto a = static_cast<Wide<T>>(old[i]);
      const auto b = static_cast<Wide<T>>(value[i]);
      out[i] = keeps ? old[i] : static_cast<T>(kSubtract ? SubOf(a, b) : AddOf(a, b));
    }
  }
};

struct AssignKernel {
  UpdateArgs args;
  int64_t packs;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const bool keeps = args.error != nullptr && *args.error != 0;
    const auto* from = static_cast<const uint8_t*>(keeps ? args.old : args.value);
    auto* out = static_cast<uint8_t*>(args.out);
    if (from == out) return;
    for (int64_t i = t.first(); i < packs; i += t.step()) StorePack(out, i, LoadPack<kPackBytes>(from, i));
    for (int64_t i = packs * kPackBytes + t.first(); i < args.n; i += t.step()) out[i] = from[i];
  }
};

}  // namespace

void LaunchVariableUpdate(Driver& driver, StreamHandle stream, VariableUpdate update, ElementType type,
                          const UpdateArgs& args) {
  ForNumbers(type, "the update of a variable", [&]<typename T>(T) {
    const LaunchSize size = SizeFor(args.n);
    if (update == VariableUpdate::kAdd) return Launch(driver, stream, size, ChangeKernel<T, false>{args});
    Launch(driver, stream, size, ChangeKernel<T, true>{args});
  });
}

void LaunchAssign(Driver& driver, StreamHandle stream, const UpdateArgs& args) {
  const auto aligned = [](const void* data) {
    return IsAligned<uint8_t, kPackBytes>(static_cast<const uint8_t*>(data));
  };
  const bool all = aligned(args.old) && aligned(args.value) && aligned(args.out);
  Launch(driver, stream, SizeFor(args.n, all ? kPackBytes : 1), AssignKernel{args, all ? args.n / kPackBytes : 0});
}

}  // namespace cohort::cuda
