#include "cohort/backends/cuda/kernels/binary_call.h"

namespace cohort::cuda {

BinaryArgs PrepareBinary(KernelContext& ctx) {
  const Shape a = ctx.input(0).shape(), b = ctx.input(1).shape();
  const Shape shape = BroadcastShapes(a, b);
  BinaryArgs args{};
  args.a = ctx.input(0).raw_data();
  args.b = ctx.input(1).raw_data();
  // An operand of the output's shape is read where the output is written, so its memory may be used.
  Tensor& out = a == shape && b == shape ? ctx.ForwardInputOrAllocate({0, 1}, 0, shape)
                : a == shape             ? ctx.ForwardInputOrAllocate(0, 0, shape)
                : b == shape             ? ctx.ForwardInputOrAllocate(1, 0, shape)
                                         : ctx.AllocateOutput(0, shape);
  args.out = out.raw_data();
  args.n = out.num_elements();
  if (args.n == 0) return args;
  // A single element is a scalar for the loop, but it may also be all of the result.
  args.a_step = a.num_elements() == 1 && args.n > 1 ? 0 : 1;
  args.b_step = b.num_elements() == 1 && args.n > 1 ? 0 : 1;
  const bool simple =
      (args.a_step == 0 || a.num_elements() == args.n) && (args.b_step == 0 || b.num_elements() == args.n);
  if (simple) return args;
  args.broadcasts = true;
  args.dims = DimsOf(PlanBroadcast<2>(shape, {&a, &b}));
  return args;
}

}  // namespace cohort::cuda
