#include "cohort/ops/rearrange.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/select.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

// 0, 1, ... along dimension i.
Output PositionsOf(Output value, int i) {
  Graph& graph = value.graph();
  return Range(Const(graph, int64_t{0}), DimValue(value, i, DType::kInt64), Const(graph, int64_t{1}));
}

}  // namespace

Output Roll(Output input, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes, const NodeName& name) {
  if (shifts.size() != axes.size()) {
    throw InvalidArgumentError(StrCat("[ops/rearrange] expected one axis for each shift; got ", shifts.size(),
                                      " shifts and ", axes.size(), " axes"));
  }
  if (!input.shape().has_rank()) {
    throw InvalidArgumentError("[ops/rearrange] expected a tensor of known rank to roll; got an unknown rank");
  }
  const CallSiteScope site(input.graph(), name.site());
  Output result = input;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = NormalizeAxis(axes[i], input.shape().rank());
    result =
        Gather(result, FloorMod(PositionsOf(result, axis) - shifts[i], DimValue(result, axis, DType::kInt64)), axis);
  }
  return Identity(result, name);
}

Output MatrixBandPart(Output input, int64_t num_lower, int64_t num_upper, const NodeName& name) {
  const Shape& shape = input.shape();
  if (!shape.has_rank() || shape.rank() < 2) {
    throw InvalidArgumentError(StrCat("[ops/rearrange] expected matrices of a known rank; got the shape ", shape));
  }
  const CallSiteScope site(input.graph(), name.site());
  if (num_lower < 0 && num_upper < 0) return Identity(input, name);
  const Output below =
      ExpandDims(PositionsOf(input, shape.rank() - 2), 1) - PositionsOf(input, shape.rank() - 1);  // i - j
  Output kept;
  if (num_lower >= 0) kept = LessEqual(below, num_lower);
  if (num_upper >= 0) {
    const Output upper = GreaterEqual(below, -num_upper);
    kept = kept.valid() ? LogicalAnd(kept, upper) : upper;
  }
  return SelectV2(kept, input, ScalarLike(input, 0), name);
}

}  // namespace cohort::ops
