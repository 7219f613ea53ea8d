#include "cohort/backends/cpu/kernels/reduction_plan.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cpu {
namespace {

// Bit i for axis i.
uint32_t AxisBits(const Tensor& axes, int rank) {
  uint32_t bits = 0;
  const bool narrow = axes.dtype() == DType::kInt32;
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t axis = narrow ? axes.data<int32_t>()[i] : axes.data<int64_t>()[i];
    const uint32_t bit = 1u << ops::NormalizeAxis(axis, rank, "reduction axis");
    if ((bits & bit) != 0) throw InvalidArgumentError(StrCat("reduction axis ", axis, " is given twice"));
    bits |= bit;
  }
  return bits;
}

}  // namespace

ReductionPlan PlanReduction(const Shape& input, const Tensor& axes, bool keep_dims) {
  ReductionPlan plan;
  const uint32_t bits = AxisBits(axes, input.rank());
  plan.in_elements = input.num_elements();
  for (int i = 0; i < input.rank(); ++i) {
    const bool reduced = ((bits >> i) & 1u) != 0;
    const int64_t dim = input.dim(i);
    if (!reduced || keep_dims) plan.output.AddDim(reduced ? 1 : dim);
    if (dim == 1) continue;
    const size_t last = static_cast<size_t>(plan.rank - 1);
    if (plan.rank > 0 && plan.reduced[last] == reduced) {
      plan.dims[last] *= dim;
      continue;
    }
    plan.dims[static_cast<size_t>(plan.rank)] = dim;
    plan.reduced[static_cast<size_t>(plan.rank++)] = reduced;
  }
  plan.out_elements = plan.output.num_elements();
  int64_t in_stride = 1, out_stride = 1;
  for (int i = plan.rank - 1; i >= 0; --i) {
    const size_t at = static_cast<size_t>(i);
    plan.in_stride[at] = in_stride;
    in_stride *= plan.dims[at];
    plan.out_stride[at] = plan.reduced[at] ? 0 : out_stride;
    if (!plan.reduced[at]) out_stride *= plan.dims[at];
  }
  return plan;
}

}  // namespace cohort::cpu
