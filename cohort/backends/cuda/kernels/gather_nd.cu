#include "cohort/backends/cuda/dialect/report.h"
#include "cohort/backends/cuda/kernels/gather_nd.cu.h"

namespace cohort::cuda {
namespace {

template <typename Index>
struct RowNumbers {
  RowNumberArgs args;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const auto* indices = static_cast<const Index*>(args.indices);
    for (int64_t i = t.first(); i < args.count; i += t.step()) {
      int64_t row = 0;
      bool good = true;
      for (int d = 0; d < args.depth && good; ++d) {
        const int64_t position = i * args.depth + d;
        const int64_t value = static_cast<int64_t>(indices[position]);
        good = value >= 0 && value < args.dims[d];
        if (!good) ReportError(args.check.word, args.check.number, position, [&](int64_t p) { return indices[p]; });
        row = row * args.dims[d] + value;
      }
      args.rows[i] = good ? row : args.bad_row;
    }
  }
};

}  // namespace

void LaunchRowNumbers(Driver& driver, StreamHandle stream, ElementType index, const RowNumberArgs& args) {
  if (index == ElementType::kInt64) {
    Launch(driver, stream, SizeFor(args.count), RowNumbers<int64_t>{args});
  } else {
    Launch(driver, stream, SizeFor(args.count), RowNumbers<int32_t>{args});
  }
}

}  // namespace cohort::cuda
