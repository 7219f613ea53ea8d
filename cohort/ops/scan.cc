#include "cohort/ops/scan.h"

#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

Output Scan(const char* op, Output x, Output axis, bool exclusive, bool reverse, const NodeName& name = "") {
  return Op(op, {x, axis}, name).Attr("exclusive", exclusive).Attr("reverse", reverse).Finish1();
}

std::vector<Shape> ScanShape(ShapeContext& c) {
  c.WithRank(1, 0);
  const auto axis = KnownInteger(c, 1, "axis");
  if (axis && c.input(0).has_rank()) NormalizeAxis(*axis, c.input(0).rank());
  return {c.input(0)};
}

void CumsumGradient(GradientContext& c) {
  c.SetInput(0, Scan("Cumsum", c.grad(), c.input(1), c.attr<bool>("exclusive"), !c.attr<bool>("reverse")));
}

// As TensorFlow: cumsum of (output * gradient) the other way, divided by x; NaN where x is zero.
void CumprodGradient(GradientContext& c) {
  const Output weighted = c.output(0) * c.grad();
  const Output sums = Scan("Cumsum", weighted, c.input(1), c.attr<bool>("exclusive"), !c.attr<bool>("reverse"));
  c.SetInput(0, sums / c.input(0));
}

OpDef ScanOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("x: T")
      .HostInput("axis: Tidx")
      .Output("out: T")
      .Attr("exclusive: bool = false")
      .Attr("reverse: bool = false")
      .Attr("T: {bfloat16, half, float, double, uint8, int32, int64}")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .ShapeRule(ScanShape)
      .Doc(doc);
}

}  // namespace

Output Cumsum(Output x, int axis, bool exclusive, bool reverse, const NodeName& name) {
  return Scan("Cumsum", x, Const(x.graph(), axis), exclusive, reverse, name);
}
Output Cumprod(Output x, int axis, bool exclusive, bool reverse, const NodeName& name) {
  return Scan("Cumprod", x, Const(x.graph(), axis), exclusive, reverse, name);
}

}  // namespace cohort::ops

namespace cohort {

void RegisterScanOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(ScanOp("Cumsum", "Running sum along `axis`.").Gradient(CumsumGradient));
  registry.Register(ScanOp("Cumprod", "Running product along `axis`.").Gradient(CumprodGradient));
}

}  // namespace cohort
