#include "cohort/ops/softmax.h"

#include <algorithm>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

Output Unary(const char* op, Output x) { return x.graph().Op(op).Input(x).Finish1(); }
Output Binary(const char* op, Output a, Output b) { return a.graph().Op(op).Input(a).Input(b).Finish1(); }
Output ConstInts(Graph& graph, const Tensor& value) {
  return graph.Op("Const").Attr("dtype", value.dtype()).Attr("value", value).Finish1();
}
Output SumOfRows(Output x) {
  const Output axis = ConstInts(x.graph(), Tensor::Vector(std::vector<int32_t>{-1}));
  return x.graph().Op("Sum").Input(x).Input(axis).Attr("keep_dims", true).Finish1();
}
Output AsColumn(Output x) {
  const Output axis = ConstInts(x.graph(), Tensor::Scalar(int32_t{-1}));
  return x.graph().Op("ExpandDims").Input(x).Input(axis).Finish1();
}

// J^T g of softmax: (g - sum(g s)) s.
Output SoftmaxBackprop(Output g, Output softmax) {
  return Binary("Mul", Binary("Sub", g, SumOfRows(Binary("Mul", g, softmax))), softmax);
}

// Of loss by features: the backprop output times the loss's gradient; where backprop itself is differentiated, also
// the second derivative, that of softmax.
Output CrossEntropyGradient(GradientContext& c) {
  Output result;
  if (c.has_grad(0)) result = Binary("Mul", AsColumn(c.grad(0)), c.output(1));
  if (c.has_grad(1)) {
    const Output second = SoftmaxBackprop(c.grad(1), Unary("Softmax", c.input(0)));
    result = result.valid() ? Binary("AddV2", result, second) : second;
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
                          const Output softmax = Unary("Exp", c.output(0));
                          c.SetInput(0, Binary("Sub", g, Binary("Mul", SumOfRows(g), softmax)));
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
                          const Output log_softmax = Unary("LogSoftmax", c.input(0));
                          c.SetInput(1, Binary("Mul", AsColumn(c.grad(0)), Unary("Neg", log_softmax)));
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

Output ReshapeTo(Output x, const std::vector<int32_t>& dims) {
  return x.graph().Op("Reshape").Input(x).Input(ConstInts(x.graph(), Tensor::Vector(dims))).Finish1();
}

// The dimensions as a Reshape takes them: one of them may be unknown.
std::vector<int32_t> ReshapeDims(const Shape& shape, const char* what) {
  std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
  if (std::count(dims.begin(), dims.end(), -1) > 1) {
    throw InvalidArgumentError(StrCat("[ops/softmax] expected at most one unknown dimension in ", what, "; got ", shape));
  }
  return dims;
}

// The op is for [batch, classes]; more batch dimensions are folded into one and unfolded afterwards.
Output CrossEntropy(const char* op, Output logits, Output labels, bool sparse, const std::string& name) {
  Graph& graph = logits.graph();
  const int rank = logits.shape().rank();
  if (rank < 0 || rank == 2) return graph.Op(op).Name(name).Input(logits).Input(labels).Finish1();
  if (rank == 0) throw InvalidArgumentError(StrCat("[ops/softmax] expected logits of rank 1 or more; got ", logits.shape()));
  const int64_t classes = logits.shape().dim(rank - 1);
  if (classes < 0) {
    throw InvalidArgumentError(StrCat("[ops/softmax] expected a known number of classes; got logits ", logits.shape()));
  }
  const std::vector<int32_t> rows = {-1, static_cast<int32_t>(classes)};
  const Output flat_labels = sparse ? ReshapeTo(labels, {-1}) : ReshapeTo(labels, rows);
  const Output loss = graph.Op(op).Name(name).Input(ReshapeTo(logits, rows)).Input(flat_labels).Finish1();
  return ReshapeTo(loss, ReshapeDims(logits.shape().Sub(0, rank - 1), "the batch dimensions of logits"));
}

}  // namespace

Output Softmax(Output logits, const std::string& name) {
  return logits.graph().Op("Softmax").Name(name).Input(logits).Finish1();
}
Output LogSoftmax(Output logits, const std::string& name) {
  return logits.graph().Op("LogSoftmax").Name(name).Input(logits).Finish1();
}
Output SoftmaxCrossEntropyWithLogits(Output logits, Output labels, const std::string& name) {
  return CrossEntropy("SoftmaxCrossEntropyWithLogits", logits, labels, false, name);
}
Output SparseSoftmaxCrossEntropyWithLogits(Output logits, Output labels, const std::string& name) {
  return CrossEntropy("SparseSoftmaxCrossEntropyWithLogits", logits, labels, true, name);
}

// max(x, 0) - x z + log(1 + e^-|x|), by selection and not by |x|, so that the gradient at x = 0 is s - z as well.
Output SigmoidCrossEntropyWithLogits(Output logits, Output labels, const std::string& name) {
  const NameScope scope(logits.graph(), name);
  const Output zeros = Unary("ZerosLike", logits);
  const Output positive = Binary("GreaterEqual", logits, zeros);
  const auto select = [&](Output yes, Output no) {
    return logits.graph().Op("SelectV2").Input(positive).Input(yes).Input(no).Finish1();
  };
  const Output linear = Binary("Sub", select(logits, zeros), Binary("Mul", logits, labels));
  return Binary("AddV2", linear, Unary("Softplus", select(Unary("Neg", logits), logits)));
}

}  // namespace ops
}  // namespace cohort
