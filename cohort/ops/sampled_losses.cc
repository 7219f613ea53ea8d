#include "cohort/ops/sampled_losses.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/softmax.h"

namespace cohort::ops {

Output ClassTable::Gather(Output ids, PartitionStrategy partition_strategy) const {
  if (const auto* variable = std::get_if<Variable>(&table_)) return EmbeddingLookup(*variable, ids, partition_strategy);
  return ops::Gather(std::get<Output>(table_), ids);
}

namespace {

struct LogitsAndLabels {
  Output logits;  // [batch, num_true + num_sampled]
  Output labels;
};

void CheckArguments(Output labels, Output inputs, int num_true) {
  if (!labels.shape().IsCompatibleWith(Shape{-1, num_true})) {
    throw InvalidArgumentError(
        StrCat("[ops/sampled_losses] expected labels of shape [batch,", num_true, "]; got ", labels.shape()));
  }
  if (labels.dtype() != DType::kInt32 && labels.dtype() != DType::kInt64) {
    throw InvalidArgumentError(StrCat("[ops/sampled_losses] expected labels of int32 or int64; got ", labels.dtype()));
  }
  if (!IsFloating(inputs.dtype()) || !inputs.shape().IsCompatibleWith(Shape{-1, -1})) {
    throw InvalidArgumentError(StrCat("[ops/sampled_losses] expected inputs [batch, dim] of a floating dtype; got ",
                                      inputs.dtype(), inputs.shape()));
  }
}

// Throws unless the classes are a vector, with one count for each of them and for each label.
void CheckCandidates(const SampledCandidates& drawn, Output labels) {
  const Shape& classes = drawn.sampled_candidates.shape();
  if (!classes.IsCompatibleWith(Shape{-1})) {
    throw InvalidArgumentError(
        StrCat("[ops/sampled_losses] expected sampled_candidates of shape [num_sampled]; got ", classes));
  }
  const Shape& counts = drawn.sampled_expected_count.shape();
  const Shape expected = classes.has_rank() ? classes : Shape{-1};
  if (!counts.IsCompatibleWith(expected)) {
    throw InvalidArgumentError(
        StrCat("[ops/sampled_losses] expected sampled_expected_count of shape ", expected, "; got ", counts));
  }
  const Shape& true_counts = drawn.true_expected_count.shape();
  if (!true_counts.IsCompatibleWith(labels.shape())) {
    throw InvalidArgumentError(StrCat("[ops/sampled_losses] expected true_expected_count of the labels' shape ",
                                      labels.shape(), "; got ", true_counts));
  }
}

// A logit that no exponential sees. It is finite, so that 0 times it is 0.
constexpr float kNoLogit = -3e38f;

// Whether a drawn class is a true class of the example: [batch, num_sampled].
Output AccidentalHits(Output labels, Output sampled) {
  return Any(Equal(ExpandDims(labels, 2), Reshape(sampled, {1, 1, -1})), {1});
}

Output LogOfCount(Output count, DType dtype) { return Log(Cast(StopGradient(count), dtype)); }

LogitsAndLabels SampledLogits(const ClassTable& weights, const ClassTable& biases, Output labels, Output inputs,
                              int num_sampled, int64_t num_classes, const SampledLossOptions& options, bool remove) {
  const int num_true = options.num_true;
  CheckArguments(labels, inputs, num_true);
  labels = Cast(labels, DType::kInt64);
  const SampledCandidates drawn = options.sampled_values ? *options.sampled_values
                                                         : LogUniformCandidateSampler(labels, num_true, num_sampled,
                                                                                      true, num_classes, options.seed);
  CheckCandidates(drawn, labels);
  const Output sampled = Cast(drawn.sampled_candidates, DType::kInt64);
  const Output ids = Concat({Reshape(labels, {-1}), sampled}, 0);
  const Output rows = weights.Gather(ids, options.partition_strategy);
  const Output all_biases = biases.Gather(ids, options.partition_strategy);
  // The first rows are those of the true classes.
  const Output count = Reshape(Size(labels), std::vector<int64_t>{1});
  const Output corner = Pack({Size(labels), Const(labels.graph(), 0)});
  const Output width = Pack({Size(labels), Const(labels.graph(), -1)});
  const Output true_rows = Slice(rows, {0, 0}, width), sampled_rows = Slice(rows, corner, {-1, -1});
  const Output true_biases = Slice(all_biases, std::vector<int64_t>{0}, count);
  const Output sampled_biases = Slice(all_biases, count, std::vector<int64_t>{-1});

  // [batch, 1, dim] times [batch, num_true, dim], summed over dim.
  const Output true_matrix =
      Reshape(true_rows, Pack({Const(rows.graph(), -1), Const(rows.graph(), num_true),
                               Reshape(Slice(ShapeOf(inputs), {1}, {1}), std::vector<int64_t>{})}));
  Output true_logits = Sum(Mul(ExpandDims(inputs, 1), true_matrix), {2});
  true_logits = true_logits + Reshape(true_biases, {-1, num_true});
  Output sampled_logits = MatMul(inputs, sampled_rows, false, true) + sampled_biases;
  if (remove) {
    sampled_logits = SelectV2(AccidentalHits(labels, sampled), ScalarLike(inputs, kNoLogit), sampled_logits);
  }
  true_logits = true_logits - LogOfCount(drawn.true_expected_count, inputs.dtype());
  sampled_logits = sampled_logits - LogOfCount(drawn.sampled_expected_count, inputs.dtype());
  const Output ones = OnesLike(true_logits) / static_cast<float>(num_true);
  return {Concat({true_logits, sampled_logits}, 1), StopGradient(Concat({ones, ZerosLike(sampled_logits)}, 1))};
}

}  // namespace

Output SampledSoftmaxLoss(const ClassTable& weights, const ClassTable& biases, Output labels, Output inputs,
                          int num_sampled, int64_t num_classes, const SampledLossOptions& options,
                          const NodeName& name) {
  const NameScope scope(inputs.graph(), name);
  const CallSiteScope site(inputs.graph(), name.site());
  const LogitsAndLabels both = SampledLogits(weights, biases, labels, inputs, num_sampled, num_classes, options,
                                             options.remove_accidental_hits.value_or(true));
  return SoftmaxCrossEntropyWithLogits({.labels = both.labels, .logits = both.logits});
}

Output NceLoss(const ClassTable& weights, const ClassTable& biases, Output labels, Output inputs, int num_sampled,
               int64_t num_classes, const SampledLossOptions& options, const NodeName& name) {
  const NameScope scope(inputs.graph(), name);
  const CallSiteScope site(inputs.graph(), name.site());
  const LogitsAndLabels both = SampledLogits(weights, biases, labels, inputs, num_sampled, num_classes, options,
                                             options.remove_accidental_hits.value_or(false));
  return Sum(SigmoidCrossEntropyWithLogits({.labels = both.labels, .logits = both.logits}), {1});
}

}  // namespace cohort::ops
