// Losses for very many classes, which look at the true classes and at some others that are drawn at random. They are
// for training only: to evaluate a model, compute the full softmax. As tf.nn.sampled_softmax_loss and tf.nn.nce_loss.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/candidate_sampling.h"
#include "cohort/ops/partitioned_variables.h"
#include "cohort/ops/variables.h"

namespace cohort::ops {

// A table with one row for each class: a variable, which may have parts, or a value of the graph. Converts implicitly
// from both. The gradient of a variable is sparse: it has the rows of the classes that were looked at.
class COHORT_EXPORT ClassTable {
 public:
  ClassTable(const Variable& variable) : table_(variable) {}  // NOLINT(google-explicit-constructor)
  ClassTable(Output value) : table_(value) {}                 // NOLINT(google-explicit-constructor)
  // Returns the rows of the classes `ids` (int64 [n]).
  Output Gather(Output ids, PartitionStrategy partition_strategy = PartitionStrategy::kDiv) const;

 private:
  std::variant<Variable, Output> table_;
};

struct COHORT_EXPORT SampledLossOptions {
  // How many true classes each example has.
  int num_true = 1;
  // The classes that were drawn. If it is nullopt, LogUniformCandidateSampler draws `num_sampled` different ones of
  // `num_classes` with `seed`; if it is given, these three are not read. No gradient flows to the counts.
  std::optional<SampledCandidates> sampled_values = std::nullopt;
  // Whether a class that was drawn, but is a true class of the example, is left out for this example. If it is nullopt:
  // true for SampledSoftmaxLoss, false for NceLoss.
  std::optional<bool> remove_accidental_hits = std::nullopt;
  // How the classes lie in the parts of tables that have parts. tf.nn.nce_loss has kDiv, and no other, as
  // tf.nn.sampled_softmax_loss has; those of tf.compat.v1 have kMod by default.
  PartitionStrategy partition_strategy = PartitionStrategy::kDiv;
  int64_t seed = 0;  // of the classes to draw, without sampled_values
};

// Return the loss of each example, [batch]. `weights` is [num_classes, dim], `biases` [num_classes], `labels` int32 or
// int64 [batch, num_true], and `inputs` [batch, dim] of a floating dtype, that of the tables. The logit of a class is
// the product of its row and the input, plus its bias, minus the logarithm of how often the class is expected among the
// drawn ones.
// - SampledSoftmaxLoss is the cross entropy of the softmax over true and drawn classes; each true class has the label
//   1 / num_true.
// - NceLoss (noise-contrastive estimation) is the sum of the cross entropies of the sigmoids of all these classes, with
//   the label 1 / num_true for true classes and 0 for drawn ones.
// Throw InvalidArgumentError for shapes or dtypes that do not fit. An id that is not a row of the table fails the step.
COHORT_EXPORT Output SampledSoftmaxLoss(const ClassTable& weights, const ClassTable& biases, Output labels,
                                        Output inputs, int num_sampled, int64_t num_classes,
                                        const SampledLossOptions& options = {},
                                        const NodeName& name = "sampled_softmax_loss");
COHORT_EXPORT Output NceLoss(const ClassTable& weights, const ClassTable& biases, Output labels, Output inputs,
                             int num_sampled, int64_t num_classes, const SampledLossOptions& options = {},
                             const NodeName& name = "nce_loss");

}  // namespace cohort::ops
