// Comparisons and logical ops as binary elementwise kernels (elementwise.h). Equality also has kernels for strings, and
// for shapes that do not broadcast.
#include <memory>
#include <string>
#include <type_traits>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

using cpu::BinaryKernel;
using cpu::MakeBinaryLoops;

struct EqualFn {
  template <typename W>
  static COHORT_INLINE bool Apply(W x, W y) {
    return x == y;
  }
};
struct NotEqualFn {
  template <typename W>
  static COHORT_INLINE bool Apply(W x, W y) {
    return x != y;
  }
};
struct LessFn {
  template <typename W>
  static COHORT_INLINE bool Apply(W x, W y) {
    return x < y;
  }
};
struct LessEqualFn {
  template <typename W>
  static COHORT_INLINE bool Apply(W x, W y) {
    return x <= y;
  }
};
struct GreaterFn {
  template <typename W>
  static COHORT_INLINE bool Apply(W x, W y) {
    return x > y;
  }
};
struct GreaterEqualFn {
  template <typename W>
  static COHORT_INLINE bool Apply(W x, W y) {
    return x >= y;
  }
};
struct AndFn {
  static COHORT_INLINE bool Apply(bool x, bool y) { return x & y; }
};
struct OrFn {
  static COHORT_INLINE bool Apply(bool x, bool y) { return x | y; }
};

template <typename Fn>
void RegisterOrder(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(c.node.input(0).dtype(), c.node.op_name(),
                              []<typename T>(T) -> std::unique_ptr<OpKernel> {
                                return std::make_unique<BinaryKernel>(MakeBinaryLoops<Fn, T, bool>(), 1);
                              });
  });
}

template <typename Fn>
void RegisterLogical(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction&) {
    return std::make_unique<BinaryKernel>(MakeBinaryLoops<Fn, bool, bool>(), 1);
  });
}

// Equal (or NotEqual, `negated`) of strings.
class StringEquality final : public OpKernel {
 public:
  explicit StringEquality(bool negated) : negated_(negated) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    const Shape shape = BroadcastShapes(a.shape(), b.shape());
    Tensor& out = ctx.AllocateOutput(0, shape);
    if (out.num_elements() == 0) return;
    const auto plan = cpu::PlanBroadcast<2>(shape, {&a.shape(), &b.shape()});
    const int64_t step_a = plan.inner_repeats(0) ? 0 : 1, step_b = plan.inner_repeats(1) ? 0 : 1;
    const std::string* x = a.data<std::string>();
    const std::string* y = b.data<std::string>();
    cpu::WalkBroadcast(plan, 0, plan.outer(), [&](int64_t at, const std::array<int64_t, 2>& offsets) {
      for (int64_t i = 0; i < plan.inner(); ++i) {
        out.data<bool>()[at + i] = (x[offsets[0] + i * step_a] == y[offsets[1] + i * step_b]) != negated_;
      }
    });
  }

 private:
  bool negated_;
};

// If shapes do not broadcast and the node says that this is no error, the result is one scalar: not equal.
class LenientEquality final : public OpKernel {
 public:
  LenientEquality(std::unique_ptr<OpKernel> strict, bool negated) : strict_(std::move(strict)), negated_(negated) {}
  void Compute(KernelContext& ctx) override {
    if (ops::CanBroadcast(ctx.input(0).shape(), ctx.input(1).shape())) return strict_->Compute(ctx);
    *ctx.AllocateOutput(0, Shape()).data<bool>() = negated_;
  }

 private:
  std::unique_ptr<OpKernel> strict_;
  bool negated_;
};

template <typename Fn>
void RegisterEquality(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    const bool negated = std::is_same_v<Fn, NotEqualFn>;
    const DType dtype = c.node.input(0).dtype();
    std::unique_ptr<OpKernel> kernel;
    if (dtype == DType::kString) {
      kernel = std::make_unique<StringEquality>(negated);
    } else if (dtype == DType::kBool) {
      kernel = std::make_unique<BinaryKernel>(MakeBinaryLoops<Fn, bool, bool>(), 1);
    } else {
      kernel = cpu::ForAllNumbers(dtype, c.node.op_name(), []<typename T>(T) -> std::unique_ptr<OpKernel> {
        return std::make_unique<BinaryKernel>(MakeBinaryLoops<Fn, T, bool>(), 1);
      });
    }
    if (!c.attr<bool>("incompatible_shape_error"))
      kernel = std::make_unique<LenientEquality>(std::move(kernel), negated);
    return kernel;
  });
}

}  // namespace

void RegisterComparisonKernels(KernelRegistry& registry) {
  RegisterEquality<EqualFn>(registry, "Equal");
  RegisterEquality<NotEqualFn>(registry, "NotEqual");
  RegisterOrder<LessFn>(registry, "Less");
  RegisterOrder<LessEqualFn>(registry, "LessEqual");
  RegisterOrder<GreaterFn>(registry, "Greater");
  RegisterOrder<GreaterEqualFn>(registry, "GreaterEqual");
  RegisterLogical<AndFn>(registry, "LogicalAnd");
  RegisterLogical<OrFn>(registry, "LogicalOr");
}

}  // namespace cohort
