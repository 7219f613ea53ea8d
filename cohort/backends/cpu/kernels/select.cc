// Select, SelectV2 and ClipByValue. Chooser takes each element from one of two operands, in the memory of an operand if
// possible.
#include <array>
#include <memory>
#include <string>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// Each operand moves by one element, or does not move if it `repeats`.
template <typename T, bool kTRepeats, bool kERepeats>
struct ChooseBody {
  static COHORT_INLINE void Run(const bool* condition, const T* t, const T* e, T* out, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = condition[i] ? t[kTRepeats ? 0 : i] : e[kERepeats ? 0 : i];
  }
};

template <typename T>
using ChooseLoop = void (*)(const bool*, const T*, const T*, T*, int64_t);

template <typename T>
class Chooser {
 public:
  void Run(const bool* condition, bool c_repeats, const T* t, bool t_repeats, const T* e, bool e_repeats, T* out,
           int64_t n) const {
    if (c_repeats) {
      const T* from = *condition ? t : e;
      const bool repeats = *condition ? t_repeats : e_repeats;
      if (repeats)
        std::fill(out, out + n, T(*from));
      else if (from != out)
        std::copy(from, from + n, out);
      return;
    }
    loops_[t_repeats][e_repeats](condition, t, e, out, n);
  }

 private:
  static ChooseLoop<T> Pick(bool t, bool e) {
    if (t) return e ? cpu::Widest<ChooseBody<T, true, true>>() : cpu::Widest<ChooseBody<T, true, false>>();
    return e ? cpu::Widest<ChooseBody<T, false, true>>() : cpu::Widest<ChooseBody<T, false, false>>();
  }
  std::array<std::array<ChooseLoop<T>, 2>, 2> loops_ = {
      {{Pick(false, false), Pick(false, true)}, {Pick(true, false), Pick(true, true)}}};
};

template <typename T>
class SelectV2Kernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& c = ctx.input(0);
    const Tensor& t = ctx.input(1);
    const Tensor& e = ctx.input(2);
    const Shape shape = BroadcastShapes(c.shape(), BroadcastShapes(t.shape(), e.shape()));
    Tensor& out = Allocate(ctx, shape, t.shape(), e.shape());
    const int64_t n = out.num_elements();
    if (n == 0) return;
    const bool* condition = static_cast<const bool*>(c.raw_data());
    const T* from_t = static_cast<const T*>(t.raw_data());
    const T* from_e = static_cast<const T*>(e.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const auto simple = [&](const Tensor& x) { return x.num_elements() == 1 || x.shape() == shape; };
    if (simple(c) && simple(t) && simple(e)) {
      return chooser_.Run(condition, c.num_elements() != n, from_t, t.num_elements() != n, from_e,
                          e.num_elements() != n, to, n);
    }
    const auto plan = cpu::PlanBroadcast<3>(shape, {&c.shape(), &t.shape(), &e.shape()});
    cpu::ForBlocks(
        plan.outer(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          cpu::WalkBroadcast(plan, begin, end, [&](int64_t at, const std::array<int64_t, 3>& offsets) {
            chooser_.Run(condition + offsets[0], plan.inner_repeats(0), from_t + offsets[1], plan.inner_repeats(1),
                         from_e + offsets[2], plan.inner_repeats(2), to + at, plan.inner());
          });
        },
        plan.inner());
  }

 private:
  // Uses the memory of an operand of the result's shape, because its elements stand at the same places as the result's.
  static Tensor& Allocate(KernelContext& ctx, const Shape& shape, const Shape& t, const Shape& e) {
    if (t == shape && e == shape) return ctx.ForwardInputOrAllocate({1, 2}, 0, shape);
    if (t == shape) return ctx.ForwardInputOrAllocate(1, 0, shape);
    if (e == shape) return ctx.ForwardInputOrAllocate(2, 0, shape);
    return ctx.AllocateOutput(0, shape);
  }

  Chooser<T> chooser_;
};

// The condition is a scalar, one flag a row, or has the shape of the values.
template <typename T>
class SelectKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& c = ctx.input(0);
    const Tensor& t = ctx.input(1);
    const Tensor& e = ctx.input(2);
    const Shape& shape = t.shape();
    if (e.shape() != shape) {
      throw InvalidArgumentError(StrCat("t of shape ", shape, " and e of shape ", e.shape(), " must have one shape"));
    }
    const bool rows = c.shape().rank() == 1 && shape.rank() > 1 && c.shape().dim(0) == shape.dim(0);
    if (!c.shape().IsScalar() && c.shape() != shape && !rows) {
      throw InvalidArgumentError(StrCat("the condition of shape ", c.shape(),
                                        " must be a scalar, one flag a row or have "
                                        "the shape of the values, ",
                                        shape));
    }
    Tensor& out = ctx.ForwardInputOrAllocate({1, 2}, 0, shape);
    const bool* condition = static_cast<const bool*>(c.raw_data());
    const T* from_t = static_cast<const T*>(t.raw_data());
    const T* from_e = static_cast<const T*>(e.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const int64_t n = out.num_elements();
    if (n == 0) return;
    if (!rows) return chooser_.Run(condition, c.shape().IsScalar(), from_t, false, from_e, false, to, n);
    const int64_t row = n / shape.dim(0);
    for (int64_t i = 0; i < shape.dim(0); ++i) {
      chooser_.Run(condition + i, true, from_t + i * row, false, from_e + i * row, false, to + i * row, row);
    }
  }

 private:
  Chooser<T> chooser_;
};

template <template <typename> class Kernel>
void RegisterChoice(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForElements(c.node.input(1).dtype(), c.node.op_name(),
                            []<typename T>(T) -> std::unique_ptr<OpKernel> { return std::make_unique<Kernel<T>>(); });
  });
}

struct ClipFn {
  template <typename W>
  static COHORT_INLINE W Apply(W x, W low, W high) {
    const W raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

template <typename T>
struct ClipBody {
  static COHORT_INLINE void Run(const T* x, const T* low, int64_t low_step, const T* high, int64_t high_step, T* out,
                                int64_t n) {
    using W = cpu::Wide<T>;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<T>(
          ClipFn::Apply(static_cast<W>(x[i]), static_cast<W>(low[i * low_step]), static_cast<W>(high[i * high_step])));
    }
  }
};

template <typename T>
class ClipKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, x.shape());
    const int64_t low_step = Step(ctx.input(1), x), high_step = Step(ctx.input(2), x);
    cpu::ForBlocks(x.num_elements(), ctx.num_threads(), [&](int64_t begin, int64_t end) {
      loop_(x.data<T>() + begin, ctx.input(1).data<T>() + begin * low_step, low_step,
            ctx.input(2).data<T>() + begin * high_step, high_step, out.data<T>() + begin, end - begin);
    });
  }

 private:
  static int64_t Step(const Tensor& bound, const Tensor& x) {
    if (bound.shape().IsScalar()) return 0;
    if (bound.shape() == x.shape()) return 1;
    throw InvalidArgumentError(
        StrCat("a bound must be a scalar or have the shape ", x.shape(), "; got ", bound.shape()));
  }
  void (*loop_)(const T*, const T*, int64_t, const T*, int64_t, T*, int64_t) = cpu::Widest<ClipBody<T>>();
};

}  // namespace

void RegisterSelectKernels(KernelRegistry& registry) {
  RegisterChoice<SelectV2Kernel>(registry, "SelectV2");
  RegisterChoice<SelectKernel>(registry, "Select");
  registry.Register("ClipByValue", "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(
        c.node.input(0).dtype(), c.node.op_name(),
        []<typename T>(T) -> std::unique_ptr<OpKernel> { return std::make_unique<ClipKernel<T>>(); });
  });
}

}  // namespace cohort
