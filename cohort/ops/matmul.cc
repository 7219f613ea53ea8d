#include "cohort/ops/matmul.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {

Output MatMul(Output a, Output b, bool transpose_a, bool transpose_b, const NodeName& name) {
  return Op("MatMul", {a, b}, name).Attr("transpose_a", transpose_a).Attr("transpose_b", transpose_b).Finish1();
}

Output BatchMatMul(Output x, Output y, bool adj_x, bool adj_y, const NodeName& name) {
  return Op("BatchMatMulV2", {x, y}, name).Attr("adj_x", adj_x).Attr("adj_y", adj_y).Finish1();
}

namespace {

// The product of the matrices in the last two dimensions of a and b.
Shape ProductShape(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
  const int ra = a.rank(), rb = b.rank();
  const int64_t m = a.dim(transpose_a ? ra - 1 : ra - 2), ka = a.dim(transpose_a ? ra - 2 : ra - 1);
  const int64_t kb = b.dim(transpose_b ? rb - 1 : rb - 2), n = b.dim(transpose_b ? rb - 2 : rb - 1);
  if (ka >= 0 && kb >= 0 && ka != kb) {
    throw InvalidArgumentError(StrCat("Matrix size-incompatible: In[0]: ", a, transpose_a ? " transposed" : "",
                                      ", In[1]: ", b, transpose_b ? " transposed" : "", ": inner dimensions ", ka,
                                      " and ", kb, " differ"));
  }
  return Shape{m, n};
}

std::vector<Shape> MatMulShape(ShapeContext& c) {
  return {ProductShape(c.WithRank(0, 2), c.WithRank(1, 2), c.attr<bool>("transpose_a"), c.attr<bool>("transpose_b"))};
}

std::vector<Shape> BatchMatMulShape(ShapeContext& c) {
  const Shape& x = c.WithRankAtLeast(0, 2);
  const Shape& y = c.WithRankAtLeast(1, 2);
  if (!x.has_rank() || !y.has_rank()) return UnknownShapes(1);
  const Shape batch = BroadcastShapes(x.Sub(0, x.rank() - 2), y.Sub(0, y.rank() - 2));
  return {batch.Concat(ProductShape(x, y, c.attr<bool>("adj_x"), c.attr<bool>("adj_y")))};
}

struct Products {
  Output a;
  Output b;
};

// Gradients of a' b' for the four cases of transposition. `product(x, y, tx, ty, name)` adds a product node.
template <typename Product>
Products ProductGradients(Output g, Output a, Output b, bool ta, bool tb, Product product) {
  if (!ta && !tb) return {product(g, b, false, true, ""), product(a, g, true, false, "")};
  if (!ta && tb) return {product(g, b, false, false, ""), product(g, a, true, false, "")};
  if (ta && !tb) return {product(b, g, false, true, ""), product(a, g, false, false, "")};
  return {product(b, g, true, true, ""), product(g, a, true, true, "")};
}

void MatMulGradient(GradientContext& c) {
  const Products gradients = ProductGradients(c.grad(), c.input(0), c.input(1), c.attr<bool>("transpose_a"),
                                              c.attr<bool>("transpose_b"), MatMul);
  c.SetInput(0, gradients.a);
  c.SetInput(1, gradients.b);
}

void BatchMatMulGradient(GradientContext& c) {
  const Products gradients =
      ProductGradients(c.grad(), c.input(0), c.input(1), c.attr<bool>("adj_x"), c.attr<bool>("adj_y"), BatchMatMul);
  c.SetInput(0, SumToShapeOf(gradients.a, c.input(0)));
  c.SetInput(1, SumToShapeOf(gradients.b, c.input(1)));
}

}  // namespace
}  // namespace cohort::ops

namespace cohort {

void RegisterMatMulOps(OpRegistry& registry) {
  const char* types = "T: {bfloat16, half, float, double, int32, int64}";
  registry.Register(OpDef("MatMul")
                        .Input("a: T")
                        .Input("b: T")
                        .Output("product: T")
                        .Attr("transpose_a: bool = false")
                        .Attr("transpose_b: bool = false")
                        .Attr(types)
                        .ShapeRule(ops::MatMulShape)
                        .Gradient(ops::MatMulGradient)
                        .Doc("The matrix product of a and b, each transposed first where its flag says so."));
  registry.Register(OpDef("BatchMatMulV2")
                        .Input("x: T")
                        .Input("y: T")
                        .Output("output: T")
                        .Attr(types)
                        .Attr("adj_x: bool = false")
                        .Attr("adj_y: bool = false")
                        .ShapeRule(ops::BatchMatMulShape)
                        .Gradient(ops::BatchMatMulGradient)
                        .Doc("Matrix products over the last two dimensions; the leading ones broadcast."));
  registry.Register(OpDef("_FusedMatMul")
                        .Input("a: T")
                        .Input("b: T")
                        .Input("bias: T")
                        .Output("product: T")
                        .Attr("transpose_a: bool = false")
                        .Attr("transpose_b: bool = false")
                        .Attr("activation: string = ''")
                        .Attr("T: {bfloat16, float, double}")
                        .ShapeRule(ops::MatMulShape)
                        .NotDifferentiable("made when a plan is compiled, after gradients")
                        .Doc("MatMul, BiasAdd and the op named `activation`, if any, in one."));
}

}  // namespace cohort
