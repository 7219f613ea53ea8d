#include "cohort/ops/broadcast_gradient.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cohort/ops/array.h"
#include "cohort/ops/dims.h"

namespace cohort::ops {
namespace {

// Axes of the broadcast shape over which the gradient of an operand `mine` has to be summed; nullopt where
// static shapes do not decide. `other` is the other operand (or the broadcast shape itself).
std::optional<std::vector<int64_t>> StaticAxes(const Shape& mine, const Shape& other) {
  if (!mine.has_rank() || !other.has_rank()) return std::nullopt;
  const int rank = std::max(mine.rank(), other.rank());
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    const int at = i - (rank - mine.rank());
    const int other_at = i - (rank - other.rank());
    const int64_t other_dim = other_at < 0 ? 1 : other.dim(other_at);
    if (at < 0) {
      axes.push_back(i);
    } else if (mine.dim(at) == 1) {
      if (other_dim != 1) axes.push_back(i);
    } else if (mine.dim(at) < 0 && other_dim != 1) {
      return std::nullopt;
    }
  }
  return axes;
}

Output SumAxes(Output value, const std::vector<int64_t>& axes) {
  Graph& graph = value.graph();
  return graph.Op("Sum").Input(value).Input(IntVector(graph, axes)).Finish1();
}

bool OnlyLeading(const std::vector<int64_t>& axes, int missing) { return axes.size() == static_cast<size_t>(missing); }

// Where static shapes decide; else an invalid Output.
Output SumStatically(Output grad, Output target, const Shape& other) {
  const Shape mine = target.shape();
  const auto axes = StaticAxes(mine, other);
  if (!axes) return {};
  if (axes->empty()) return grad;
  const Output sum = SumAxes(grad, *axes);
  const int missing = std::max(mine.rank(), other.rank()) - mine.rank();
  return OnlyLeading(*axes, missing) ? sum : ReshapeLike(sum, target);
}

}  // namespace

Output ReshapeLike(Output value, Output like) {
  if (like.shape().IsFullyDefined() && value.shape() == like.shape()) return value;
  return Reshape(value, ShapeValue(like));
}

Output SumToShapeOf(Output grad, Output target) {
  if (const Output done = SumStatically(grad, target, grad.shape()); done.valid()) return done;
  Graph& graph = grad.graph();
  const Output shape = ShapeOf(target);
  Node* args = graph.Op("BroadcastGradientArgs").Input(shape).Input(ShapeOf(grad)).Finish();
  return Reshape(graph.Op("Sum").Input(grad).Input(args->output(0)).Finish1(), shape);
}

void SetBroadcastGradients(GradientContext& c, Output gx, Output gy) {
  const Output x = c.input(0), y = c.input(1);
  if (x == y) {
    if (gx.valid()) c.SetInput(0, gx);
    if (gy.valid()) c.SetInput(1, gy);
    return;
  }
  const Output sx = gx.valid() ? SumStatically(gx, x, y.shape()) : Output{};
  const Output sy = gy.valid() ? SumStatically(gy, y, x.shape()) : Output{};
  if (sx.valid()) c.SetInput(0, sx);
  if (sy.valid()) c.SetInput(1, sy);
  const bool need_x = gx.valid() && !sx.valid();
  const bool need_y = gy.valid() && !sy.valid();
  if (!need_x && !need_y) return;
  const Output shape_x = ShapeOf(x), shape_y = ShapeOf(y);
  Graph& graph = c.graph();
  Node* args = graph.Op("BroadcastGradientArgs").Input(shape_x).Input(shape_y).Finish();
  const auto reduce = [&](Output g, int i, Output shape) {
    return Reshape(graph.Op("Sum").Input(g).Input(args->output(i)).Finish1(), shape);
  };
  if (need_x) c.SetInput(0, reduce(gx, 0, shape_x));
  if (need_y) c.SetInput(1, reduce(gy, 1, shape_y));
}

}  // namespace cohort::ops
