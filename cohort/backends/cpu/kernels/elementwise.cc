#include "cohort/backends/cpu/kernels/elementwise.h"

#include "cohort/backends/cpu/kernels/broadcast.h"

namespace cohort::cpu {

void UnaryKernel::Compute(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  Tensor& y = ctx.ForwardInputOrAllocate(0, 0, x.shape());
  const char* in = static_cast<const char*>(x.raw_data());
  char* out = static_cast<char*>(y.raw_data());
  const int64_t n = x.num_elements();
  if (ctx.num_threads() <= 1 || n * cost_ <= kElementsWorthATeam) return loop_(in, out, n);
  const size_t in_size = DTypeSize(x.dtype()), out_size = DTypeSize(y.dtype());
  ForBlocks(
      n, ctx.num_threads(),
      [&](int64_t begin, int64_t end) {
        loop_(in + static_cast<size_t>(begin) * in_size, out + static_cast<size_t>(begin) * out_size, end - begin);
      },
      cost_);
}

// `a_step` and `b_step` are the bytes from one element to the next: 0 for a scalar operand.
void BinaryKernel::RunLoop(KernelContext& ctx, BinaryLoops::Loop loop, const Tensor& a, const Tensor& b, Tensor& out,
                           size_t a_step, size_t b_step) const {
  const char* x = static_cast<const char*>(a.raw_data());
  const char* y = static_cast<const char*>(b.raw_data());
  char* z = static_cast<char*>(out.raw_data());
  const int64_t n = out.num_elements();
  if (ctx.num_threads() <= 1 || n * cost_ <= kElementsWorthATeam) return loop(x, y, z, n);
  ForBlocks(
      n, ctx.num_threads(),
      [&](int64_t begin, int64_t end) {
        const size_t at = static_cast<size_t>(begin);
        loop(x + at * a_step, y + at * b_step, z + at * loops_.result_size, end - begin);
      },
      cost_);
}

void BinaryKernel::Compute(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  if (check_ != nullptr) check_(a, b);
  const size_t size = loops_.element_size;
  if (a.shape() == b.shape()) {
    RunLoop(ctx, loops_.both, a, b, ctx.ForwardInputOrAllocate({0, 1}, 0, a.shape()), size, size);
  } else if (b.num_elements() == 1 && b.shape().rank() <= a.shape().rank()) {
    RunLoop(ctx, loops_.right_scalar, a, b, ctx.ForwardInputOrAllocate(0, 0, a.shape()), size, 0);
  } else if (a.num_elements() == 1 && a.shape().rank() <= b.shape().rank()) {
    RunLoop(ctx, loops_.left_scalar, a, b, ctx.ForwardInputOrAllocate(1, 0, b.shape()), 0, size);
  } else {
    Broadcast(ctx, a, b);
  }
}

void BinaryKernel::Broadcast(KernelContext& ctx, const Tensor& a, const Tensor& b) const {
  const Shape shape = BroadcastShapes(a.shape(), b.shape());
  // An operand of the output's shape is read where the output is written, so its memory may be used.
  Tensor& out = a.shape() == shape   ? ctx.ForwardInputOrAllocate(0, 0, shape)
                : b.shape() == shape ? ctx.ForwardInputOrAllocate(1, 0, shape)
                                     : ctx.AllocateOutput(0, shape);
  if (out.num_elements() == 0) return;
  const auto plan = PlanBroadcast<2>(shape, {&a.shape(), &b.shape()});
  const BinaryLoops::Loop loop = plan.inner_repeats(1)   ? loops_.right_scalar
                                 : plan.inner_repeats(0) ? loops_.left_scalar
                                                         : loops_.both;
  const char* x = static_cast<const char*>(a.raw_data());
  const char* y = static_cast<const char*>(b.raw_data());
  char* z = static_cast<char*>(out.raw_data());
  const int64_t inner = plan.inner();
  ForBlocks(
      plan.outer(), ctx.num_threads(),
      [&](int64_t begin, int64_t end) {
        WalkBroadcast(plan, begin, end, [&](int64_t at, const std::array<int64_t, 2>& offsets) {
          loop(x + static_cast<size_t>(offsets[0]) * loops_.element_size,
               y + static_cast<size_t>(offsets[1]) * loops_.element_size,
               z + static_cast<size_t>(at) * loops_.result_size, inner);
        });
      },
      cost_ * inner);
}

}  // namespace cohort::cpu
