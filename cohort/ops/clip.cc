#include "cohort/ops/clip.h"

#include <limits>

#include "cohort/core/error.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::ops {
namespace {

// clip_norm / max(norm, clip_norm), NaN for a norm that is not finite.
Output ClipFactor(Output norm, float clip_norm) {
  if (!(clip_norm > 0)) throw InvalidArgumentError("[ops] clip_norm must be positive");
  const Output factor = clip_norm / Maximum(norm, ScalarLike(norm, clip_norm));
  return SelectV2(IsFinite(norm), factor, ScalarLike(norm, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace

Output GlobalNorm(const std::vector<Gradient>& gradients, const NodeName& name) {
  std::vector<Output> squares;
  for (const Gradient& gradient : gradients) {
    if (!gradient.exists()) continue;
    // Beside the gradient, in float32 at least: a sum of squares of bfloat16 loses most of them.
    const CallSiteScope site(gradient.values.graph(), name.site());
    const ColocateWith beside(gradient.values.graph(), *gradient.values.node);
    const bool narrow = gradient.values.dtype() == DType::kBfloat16;
    squares.push_back(Sum(Square(narrow ? Cast(gradient.values, DType::kFloat32) : gradient.values)));
  }
  if (squares.empty()) throw InvalidArgumentError("[ops] a global norm needs at least one gradient");
  const CallSiteScope site(squares[0].graph(), name.site());
  const ColocateWith beside(squares[0].graph(), *squares[0].node);
  for (Output& square : squares) square = Cast(square, squares[0].dtype());
  return Sqrt(squares.size() == 1 ? squares[0] : AddN(squares), name);
}

ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, float clip_norm, const NodeName& name) {
  ClippedGradients result;
  result.global_norm = GlobalNorm(gradients, {"", name.site()});
  Graph& graph = result.global_norm.graph();
  const CallSiteScope site(graph, name.site());
  Output factor;
  {
    const ColocateWith beside(graph, *result.global_norm.node);
    factor = ClipFactor(result.global_norm, clip_norm);
  }
  for (Gradient gradient : gradients) {
    if (gradient.exists()) {
      const ColocateWith beside(graph, *gradient.values.node);
      gradient.values = Mul(gradient.values, Cast(factor, gradient.values.dtype()), name);
    }
    result.gradients.push_back(gradient);
  }
  return result;
}

Output ClipByNorm(Output x, float clip_norm, const NodeName& name) {
  const CallSiteScope site(x.graph(), name.site());
  return Mul(x, ClipFactor(Sqrt(Sum(Square(x))), clip_norm), name);
}

}  // namespace cohort::ops
