#include <memory>

#include "cohort/backends/cpu/kernels/reducers.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// Running fold of [outer, n, inner] along the middle.
template <typename R, typename T>
class ScanKernel final : public OpKernel {
 public:
  explicit ScanKernel(const KernelConstruction& c)
      : exclusive_(c.attr<bool>("exclusive")), reverse_(c.attr<bool>("reverse")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Shape& shape = x.shape();
    const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(1), "axis"), shape.rank());
    const int64_t n = shape.dim(axis);
    const int64_t inner = shape.Sub(axis + 1, shape.rank()).num_elements();
    Tensor& out = ctx.AllocateOutput(0, shape);
    if (out.num_elements() == 0) return;
    const T* in = x.data<T>();
    T* to = out.data<T>();
    const int64_t outer = out.num_elements() / (n * inner);
    cpu::ForBlocks(
        outer, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; ++o) {
            for (int64_t i = 0; i < inner; ++i) Scan(in + o * n * inner + i, to + o * n * inner + i, n, inner);
          }
        },
        n * inner);
  }

 private:
  void Scan(const T* in, T* out, int64_t n, int64_t stride) const {
    using A = cpu::Wide<T>;
    A sum = R::template Start<A>();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (reverse_ ? n - 1 - i : i) * stride;
      const A next = R::Join(sum, static_cast<A>(in[at]));
      out[at] = static_cast<T>(exclusive_ ? sum : next);
      sum = next;
    }
  }

  bool exclusive_;
  bool reverse_;
};

template <typename R>
void RegisterScan(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(
        c.node.input(0).dtype(), c.node.op_name(),
        [&]<typename T>(T) -> std::unique_ptr<OpKernel> { return std::make_unique<ScanKernel<R, T>>(c); });
  });
}

}  // namespace

void RegisterScanKernels(KernelRegistry& registry) {
  RegisterScan<cpu::SumReducer>(registry, "Cumsum");
  RegisterScan<cpu::ProdReducer>(registry, "Cumprod");
}

}  // namespace cohort
