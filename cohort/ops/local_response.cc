#include "cohort/ops/local_response.h"

#include <cstdint>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

// The shape of all inputs, which are images of one shape.
std::vector<Shape> ImagesShape(ShapeContext& c) {
  if (c.attr<int64_t>("depth_radius") < 0) {
    throw InvalidArgumentError(StrCat("expected a depth_radius of at least 0; got ", c.attr<int64_t>("depth_radius")));
  }
  Shape shape = c.WithRank(0, 4);
  for (int i = 1; i < c.num_inputs(); ++i) shape = shape.MergedWith(c.WithRank(i, 4));
  return {shape};
}

OpDef&& AddNormalizationAttrs(OpDef&& def) {
  return std::move(std::move(def)
                       .Attr("depth_radius: int = 5")
                       .Attr("bias: float = 1.0")
                       .Attr("alpha: float = 1.0")
                       .Attr("beta: float = 0.5")
                       .Attr("T: {bfloat16, float} = DT_FLOAT")
                       .ShapeRule(ImagesShape));
}

void NormalizationGradient(GradientContext& c) {
  c.SetInput(0, ops::Op("LRNGrad", {c.grad(), c.input(0), c.output(0)})
                    .Attr("depth_radius", c.attr<int64_t>("depth_radius"))
                    .Attr("bias", c.attr<float>("bias"))
                    .Attr("alpha", c.attr<float>("alpha"))
                    .Attr("beta", c.attr<float>("beta"))
                    .Finish1());
}

}  // namespace

void RegisterLocalResponseOps(OpRegistry& registry) {
  registry.Register(AddNormalizationAttrs(OpDef("LRN").Input("input: T").Output("output: T"))
                        .Gradient(NormalizationGradient)
                        .Doc("Each element divided by a power of the squares of the channels around it."));
  registry.Register(
      AddNormalizationAttrs(
          OpDef("LRNGrad").Input("input_grads: T").Input("input_image: T").Input("output_image: T").Output("output: T"))
          .NotDifferentiable("TensorFlow has no second derivative of LRN, either")
          .Doc("Gradient of LRN by its input."));
}

namespace ops {

Output LRN(Output input, const LRNOptions& options, const NodeName& name) {
  return Op("LRN", {input}, name)
      .Attr("depth_radius", int64_t{options.depth_radius})
      .Attr("bias", options.bias)
      .Attr("alpha", options.alpha)
      .Attr("beta", options.beta)
      .Finish1();
}

}  // namespace ops
}  // namespace cohort
