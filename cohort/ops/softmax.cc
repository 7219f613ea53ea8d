#include "cohort/ops/softmax.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/register.h"
#include "cohort/ops/select.h"
#include "cohort/ops/unary.h"

namespace cohort {
namespace {

Output SumOfRows(Output x) { return ops::Sum(x, {-1}, /*keep_dims=*/true); }

// J^T g of softmax: (g - sum(g s)) s.
Output SoftmaxBackprop(Output g, Output softmax) {
  return ops::Mul(ops::Sub(g, SumOfRows(ops::Mul(g, softmax))), softmax);
}

// Of loss by features: the backprop output times the loss's gradient; where backprop itself is differentiated, also
// the second derivative, that of softmax.
Output CrossEntropyGradient(GradientContext& c) {
  Output result;
  if (c.has_grad(0)) result = ops::Mul(ops::ExpandDims(c.grad(0), -1), c.output(1));
  if (c.has_grad(1)) {
    const Output second = SoftmaxBackprop(c.grad(1), ops::Softmax(c.input(0)));
    result = result.valid() ? ops::Add(result, second) : second;
  }
  return result;
}

std::vector<Shape> DenseLossShape(ShapeContext& c) {
  const Shape rows = c.WithRank(0, 2).MergedWith(c.WithRank(1, 2));
  return {rows.Sub(0, 1), rows};
}

std::vector<Shape> SparseLossShape(ShapeContext& c) {
  Shape logits = c.WithRank(0, 2);
  const Shape batch = logits.Sub(0, 1).MergedWith(c.WithRank(1, 1));
  logits.set_dim(0, batch.dim(0));
  return {batch, logits};
}

std::vector<Shape> SoftmaxShape(ShapeContext& c) { return {c.WithRankAtLeast(0, 1)}; }

}  // namespace

void RegisterSoftmaxOps(OpRegistry& registry) {
  registry.Register(OpDef("Softmax")
                        .Input("logits: T")
                        .Output("softmax: T")
                        .Attr("T: {float32, float64, bfloat16}")
                        .ShapeRule(SoftmaxShape)
                        .Gradient([](GradientContext& c) { c.SetInput(0, SoftmaxBackprop(c.grad(0), c.output(0))); })
                        .Doc("exp(x_i) / sum_j exp(x_j) over the last axis."));
  registry.Register(OpDef("LogSoftmax")
                        .Input("logits: T")
                        .Output("logsoftmax: T")
                        .Attr("T: {float32, float64, bfloat16}")
                        .ShapeRule(SoftmaxShape)
                        .Gradient([](GradientContext& c) {
                          const Output g = c.grad(0);
                          const Output softmax = ops::Exp(c.output(0));
                          c.SetInput(0, ops::Sub(g, ops::Mul(SumOfRows(g), softmax)));
                        })
                        .Doc("x_i - log sum_j exp(x_j) over the last axis."));
  registry.Register(OpDef("SoftmaxCrossEntropyWithLogits")
                        .Input("features: T")
                        .Input("labels: T")
                        .Output("loss: T")
                        .Output("backprop: T")
                        .Attr("T: {float32, float64, bfloat16}")
                        .ShapeRule(DenseLossShape)
                        .Gradient([](GradientContext& c) {
                          c.SetInput(0, CrossEntropyGradient(c));
                          if (!c.has_grad(0)) return;
                          const Output log_softmax = ops::LogSoftmax(c.input(0));
                          c.SetInput(1, ops::Mul(ops::ExpandDims(c.grad(0), -1), ops::Neg(log_softmax)));
                        })
                        .Doc("loss[b] = -sum_i labels[b,i] log softmax(features[b])[i]; backprop = its derivative by "
                             "features."));
  registry.Register(OpDef("SparseSoftmaxCrossEntropyWithLogits")
                        .Input("features: T")
                        .Input("labels: Tlabels")
                        .Output("loss: T")
                        .Output("backprop: T")
                        .Attr("T: {float32, float64, bfloat16}")
                        .Attr("Tlabels: {int32, int64} = int64")
                        .ShapeRule(SparseLossShape)
                        .Gradient([](GradientContext& c) { c.SetInput(0, CrossEntropyGradient(c)); })
                        .Doc("loss[b] = -log softmax(features[b])[labels[b]]; backprop = its derivative by features."));
}

namespace ops {
namespace {

// The dimensions as a Reshape takes them: one of them may be unknown.
std::vector<int64_t> ReshapeDims(const Shape& shape, const char* what) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (std::count(dims.begin(), dims.end(), -1) > 1) {
    throw InvalidArgumentError(
        StrCat("[ops/softmax] expected at most one unknown dimension in ", what, "; got ", shape));
  }
  return dims;
}

void CheckInputs(const CrossEntropyInputs& inputs) {
  for (const auto& [value, what] : {std::pair(inputs.labels, "labels"), std::pair(inputs.logits, "logits")}) {
    if (value.node != nullptr) continue;
    throw InvalidArgumentError(
        StrCat("[ops/softmax] expected labels and logits; got no ", what, ": pass {.labels = ..., .logits = ...}"));
  }
  if (IsFloating(inputs.logits.dtype())) return;
  throw InvalidArgumentError(StrCat("[ops/softmax] expected logits of a floating-point dtype; got ",
                                    inputs.logits.dtype(), " from ", inputs.logits.node->Describe(),
                                    ": labels and logits may be swapped"));
}

// The op is for [batch, classes]; more batch dimensions are folded into one and unfolded afterwards.
Output CrossEntropy(const char* op, Output logits, Output labels, bool sparse, const NodeName& name) {
  Graph& graph = logits.graph();
  const int rank = logits.shape().rank();
  if (rank < 0 || rank == 2) return graph.Op(op).Name(name).Input(logits).Input(labels).Finish1();
  if (rank == 0)
    throw InvalidArgumentError(StrCat("[ops/softmax] expected logits of rank 1 or more; got ", logits.shape()));
  const int64_t classes = logits.shape().dim(rank - 1);
  if (classes < 0) {
    throw InvalidArgumentError(StrCat("[ops/softmax] expected a known number of classes; got logits ", logits.shape()));
  }
  const std::vector<int64_t> rows = {-1, classes};
  const Output flat_labels = sparse ? Reshape(labels, std::vector<int64_t>{-1}) : Reshape(labels, rows);
  const Output loss = graph.Op(op).Name(name).Input(Reshape(logits, rows)).Input(flat_labels).Finish1();
  return Reshape(loss, ReshapeDims(logits.shape().Sub(0, rank - 1), "the batch dimensions of logits"));
}

}  // namespace

Output Softmax(Output logits, const NodeName& name) { return Op("Softmax", {logits}).Name(name).Finish1(); }
Output LogSoftmax(Output logits, const NodeName& name) { return Op("LogSoftmax", {logits}).Name(name).Finish1(); }
Output SoftmaxCrossEntropyWithLogits(const CrossEntropyInputs& inputs, const NodeName& name) {
  CheckInputs(inputs);
  return CrossEntropy("SoftmaxCrossEntropyWithLogits", inputs.logits, inputs.labels, false, name);
}
Output SparseSoftmaxCrossEntropyWithLogits(const CrossEntropyInputs& inputs, const NodeName& name) {
  CheckInputs(inputs);
  return CrossEntropy("SparseSoftmaxCrossEntropyWithLogits", inputs.logits, inputs.labels, true, name);
}

// max(x, 0) - x z + log(1 + e^-|x|), by selection and not by |x|, so that the gradient at x = 0 is s - z as well.
Output SigmoidCrossEntropyWithLogits(const CrossEntropyInputs& inputs, const NodeName& name) {
  CheckInputs(inputs);
  const auto& [labels, logits] = inputs;
  const NameScope scope(logits.graph(), name);
  const CallSiteScope site(logits.graph(), name.site());
  const Output zero = ScalarLike(logits, 0.0);
  const Output positive = GreaterEqual(logits, zero);
  const Output linear = Sub(SelectV2(positive, logits, zero), Mul(logits, labels));
  return Add(linear, Softplus(SelectV2(positive, Neg(logits), logits)));
}

}  // namespace ops
}  // namespace cohort
