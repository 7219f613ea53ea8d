#include "cohort/backends/cpu/kernels/arg_extremum.h"

#include <memory>

#include "cohort/backends/cpu/kernels/reducers.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cpu {
namespace {

struct Larger {
  template <typename W>
  static W Start() {
    return Lowest<W>();
  }
  template <typename W>
  static bool Beats(W a, W b) {
    return a > b;
  }
};
struct Smaller {
  template <typename W>
  static W Start() {
    return Highest<W>();
  }
  template <typename W>
  static bool Beats(W a, W b) {
    return a < b;
  }
};

// The first extreme element of [outer, n, inner] along the middle; NaN never wins.
template <typename Order, typename T, typename Index>
class ArgKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Shape& shape = x.shape();
    const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(1), "dimension"), shape.rank(), "dimension");
    const int64_t n = shape.dim(axis);
    if (n == 0) throw InvalidArgumentError(StrCat("Reduction axis ", axis, " is empty in shape ", shape));
    const int64_t inner = shape.Sub(axis + 1, shape.rank()).num_elements();
    const Shape result = shape.Sub(0, axis).Concat(shape.Sub(axis + 1, shape.rank()));
    Tensor& out = ctx.AllocateOutput(0, result);
    const T* in = x.data<T>();
    Index* to = out.data<Index>();
    ForBlocks(
        out.num_elements(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) to[i] = Find(in + i / inner * n * inner + i % inner, n, inner);
        },
        n);
  }

 private:
  static Index Find(const T* in, int64_t n, int64_t stride) {
    using W = Wide<T>;
    W best = Order::template Start<W>();
    Index at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const W value = static_cast<W>(in[i * stride]);
      if (Order::Beats(value, best)) {
        best = value;
        at = static_cast<Index>(i);
      }
    }
    return at;
  }
};

template <typename Order, typename T>
std::unique_ptr<OpKernel> MakeFor(DType index) {
  if (index == DType::kInt32) return std::make_unique<ArgKernel<Order, T, int32_t>>();
  return std::make_unique<ArgKernel<Order, T, int64_t>>();
}

template <typename Order>
void RegisterArg(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    const DType dtype = c.node.input(0).dtype(), index = c.node.output_dtype(0);
    if (dtype == DType::kBool) return MakeFor<Order, bool>(index);
    return ForAllNumbers(dtype, c.node.op_name(), [&]<typename T>(T) { return MakeFor<Order, T>(index); });
  });
}

}  // namespace

void RegisterArgKernels(KernelRegistry& registry) {
  RegisterArg<Larger>(registry, "ArgMax");
  RegisterArg<Smaller>(registry, "ArgMin");
}

}  // namespace cohort::cpu
