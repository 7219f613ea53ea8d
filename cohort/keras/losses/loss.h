// Losses with Keras 3's names, arguments and defaults. A Loss is an immutable description that threads may share. Its
// functions add nodes to the graph of their arguments. The loss of a part of a batch is kept as a pair (sum, weight).
// Each replica divides its sum by the weight of all replicas; these shares add up to the loss. So it does not matter if
// replicas have different numbers of examples.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Says how the loss of a batch is made from the sum of its loss values (LossSums::sum):
// - kSumOverBatchSize: the sum is divided by the number of loss values that no mask leaves out, whatever the sample
//   weights are.
// - kMeanWithSampleWeight: the sum is divided by the sum of the sample weights.
// - kSum: the sum is the loss. LossSums::weight is not valid.
enum class Reduction { kSumOverBatchSize, kMeanWithSampleWeight, kSum };

// Two float32 scalars of one replica. Each replica divides its sum by the weight of all replicas; these shares add up
// to the loss.
struct COHORT_EXPORT LossSums {
  Output sum;
  Output weight;
};

// The base of losses. Immutable and thread-safe. Programs and models share ownership (LossPtr).
class COHORT_EXPORT Loss {
 public:
  virtual ~Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  // Returns the name that the program gave, or else Keras's name: "sparse_categorical_crossentropy".
  const std::string& name() const { return name_; }
  Reduction reduction() const { return reduction_; }

  // Returns one float32 value for each example. The result has the shape [batch], or [batch, d1, ...] if y_pred has
  // more than two dimensions. y_pred is float [batch, ..., outputs]. y_true may have any numeric dtype. Its rank is
  // that of y_pred, or one less if the comment of the loss says so. A loss that has one value for the whole batch (see
  // DiceOptions) gives it to each example; if its reduction is kSum, the result is that one value, a scalar. Throws
  // InvalidArgumentError if the shapes do not fit. If a shape is not known yet, the step that runs the nodes throws
  // this error.
  virtual Output PerExample(const Output& y_true, const Output& y_pred) const = 0;

  // Returns the weighted sum of PerExample and the weight by which it is divided (see Reduction). As in Keras, y_true
  // and y_pred get equal ranks first, if one of them has a last dimension of 1 more than the other. The values of
  // PerExample are multiplied by `sample_weight`. `sample_weight` has the shape [batch], [batch, 1] or that of
  // PerExample. If it is not valid, weights are 1. `mask` is that of y_pred (see layer.h): bool, with the first
  // dimensions of PerExample. If it is valid, values for which it is false do not count, neither in the sum nor in the
  // weight. Throws InvalidArgumentError for a mask of a higher rank than PerExample.
  LossSums Sums(const Output& y_true, const Output& y_pred, const Output& sample_weight = {},
                const Output& mask = {}) const;

  // Returns the loss in the form of Keras's files; serialization.h does the reverse. Throws UnimplementedError for a
  // loss of the program's own.
  virtual ConfigValue Serialized() const;

 protected:
  explicit Loss(std::string name, Reduction reduction = Reduction::kSumOverBatchSize)
      : name_(std::move(name)), reduction_(reduction) {}

 private:
  const std::string name_;
  const Reduction reduction_;
};

using LossPtr = std::shared_ptr<const Loss>;

struct COHORT_EXPORT CrossentropyOptions {
  // true: predictions are logits; false: predictions are probabilities. If y_pred is the output of a Softmax op (for
  // the binary loss: of a Sigmoid op), the loss uses the op's input, whether from_logits is true or false, as Keras
  // does. This is exact and does not saturate. If from_logits is true although y_pred is such an output, a warning is
  // logged.
  bool from_logits = false;
  double label_smoothing = 0.0;  // in [0, 1]; not for sparse labels
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";  // "": the loss's default name
};
struct COHORT_EXPORT LossOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};
struct COHORT_EXPORT SparseCrossentropyOptions {
  bool from_logits = false;  // as in CrossentropyOptions
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};
struct COHORT_EXPORT HuberOptions {
  double delta = 1.0;
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};

struct COHORT_EXPORT BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;  // true: values are multiplied by alpha (t = 1) or 1 - alpha (t = 0)
  double alpha = 0.25;
  double gamma = 2.0;            // not negative
  bool from_logits = false;      // as in CrossentropyOptions
  double label_smoothing = 0.0;  // in [0, 1]
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};
struct COHORT_EXPORT CategoricalFocalCrossentropyOptions {
  double alpha = 0.25;           // a factor of all values
  double gamma = 2.0;            // not negative
  bool from_logits = false;      // as in CrossentropyOptions
  double label_smoothing = 0.0;  // in [0, 1]
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};
struct COHORT_EXPORT DiceOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
  // The axes of the sums. They must not have axis 0, the batch. Empty: all axes with the batch, Keras's None. Then the
  // loss has one value for the batch. If replicas share the batch, each has the value of its part, and the loss is the
  // mean of these, weighted by the numbers of examples. So it depends on the parts, as in Keras.
  std::vector<int64_t> axis = {};
};
struct COHORT_EXPORT TverskyOptions {
  double alpha = 0.5;
  double beta = 0.5;
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
  std::vector<int64_t> axis = {};  // as in DiceOptions
};

// In the formulas below, t is y_true and p is y_pred. In those of crossentropies, p are probabilities, even if y_pred
// are logits.

// -log p[label]. y_true is integer [batch] or [batch, 1] (floats with integer values are accepted), y_pred [batch,
// classes]. A label outside of [0, classes) fails the step with InvalidArgumentError that names it.
COHORT_EXPORT LossPtr SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options = {});
// -sum_k t_k log p_k. t is one-hot or a distribution [batch, classes]. With label_smoothing = s, the loss uses
// t (1 - s) + s / classes instead of t.
COHORT_EXPORT LossPtr CategoricalCrossentropy(const CrossentropyOptions& options = {});
// Mean over the last axis of -(t log p + (1 - t) log(1 - p)). With label_smoothing = s, the loss uses
// t (1 - s) + s / 2 instead of t.
COHORT_EXPORT LossPtr BinaryCrossentropy(const CrossentropyOptions& options = {});
// Mean over the last axis of (1 - q)^gamma times the value of BinaryCrossentropy, with q = t p + (1 - t) (1 - p).
// label_smoothing is as in BinaryCrossentropy. Throws InvalidArgumentError if an option is out of range.
COHORT_EXPORT LossPtr BinaryFocalCrossentropy(const BinaryFocalCrossentropyOptions& options = {});
// -alpha sum_k (1 - p_k)^gamma t_k log p_k. t and label_smoothing are as in CategoricalCrossentropy. Throws
// InvalidArgumentError if an option is out of range.
COHORT_EXPORT LossPtr CategoricalFocalCrossentropy(const CategoricalFocalCrossentropyOptions& options = {});
COHORT_EXPORT LossPtr MeanSquaredError(const LossOptions& options = {});   // mean over the last axis of (t - p)^2
COHORT_EXPORT LossPtr MeanAbsoluteError(const LossOptions& options = {});  // mean over the last axis of |t - p|
// Mean over the last axis of 100 |t - p| / max(|t|, 1e-7).
COHORT_EXPORT LossPtr MeanAbsolutePercentageError(const LossOptions& options = {});
// Mean over the last axis of (log(t + 1) - log(p + 1))^2. Values of t and p below 1e-7 count as 1e-7.
COHORT_EXPORT LossPtr MeanSquaredLogarithmicError(const LossOptions& options = {});
COHORT_EXPORT LossPtr LogCosh(const LossOptions& options = {});  // mean over the last axis of log(cosh(p - t))
COHORT_EXPORT LossPtr Poisson(const LossOptions& options = {});  // mean over the last axis of p - t log(p + 1e-7)
// Mean over the last axis of max(1 - t p, 0), for t of -1 and 1. If all targets of the part of the batch that a replica
// has are 0 or 1, the loss uses 2 t - 1 instead of t.
COHORT_EXPORT LossPtr Hinge(const LossOptions& options = {});
COHORT_EXPORT LossPtr SquaredHinge(const LossOptions& options = {});  // as Hinge, of max(1 - t p, 0)^2
// max(1 + max_k((1 - t_k) p_k) - sum_k t_k p_k, 0), for one-hot t. y_pred has at least the dimensions [batch, classes].
COHORT_EXPORT LossPtr CategoricalHinge(const LossOptions& options = {});
// 1 - 2 sum(t p) / (sum(t) + sum(p) + 1e-7), with sums over `axis`: 0 if t and p are equal and are 0 or 1. t has the
// shape of p. Throws InvalidArgumentError if `axis` has the batch or an axis that p lacks.
COHORT_EXPORT LossPtr Dice(const DiceOptions& options = {});
// 1 - sum(t p) / (sum(t p) + alpha sum(t (1 - p)) + beta sum((1 - t) p) + 1e-7), with sums over `axis`. The rest is as
// for Dice, which has alpha = beta = 0.5.
COHORT_EXPORT LossPtr Tversky(const TverskyOptions& options = {});
// -sum_k t_k p_k / (|t| |p|): -1 if the rows t and p of the last axis have the same direction. A row that is shorter
// than 1e-7 is divided by 1e-7 and not by its length. y_pred has at least the dimensions [batch, outputs].
COHORT_EXPORT LossPtr CosineSimilarity(const LossOptions& options = {});
// sum_k t_k log(t_k / p_k). Values of t and p are first clipped to [1e-7, 1]. y_pred has at least the dimensions
// [batch, classes].
COHORT_EXPORT LossPtr KLDivergence(const LossOptions& options = {});
// Mean over the last axis of e^2 / 2 if |e| <= delta, else of delta |e| - delta^2 / 2, with e = t - p.
COHORT_EXPORT LossPtr Huber(const HuberOptions& options = {});
// Returns a loss of the program's own. Its Loss::PerExample calls `per_example`.
COHORT_EXPORT LossPtr LossFromFunction(std::string name,
                                       std::function<Output(const Output& y_true, const Output& y_pred)> per_example,
                                       Reduction reduction = Reduction::kSumOverBatchSize);

// Returns a loss by one of Keras's names: class ("SparseCategoricalCrossentropy"), function
// ("sparse_categorical_crossentropy") or short ("mse"). The loss has the default options. Throws InvalidArgumentError
// that lists all names if there is no such loss.
COHORT_EXPORT LossPtr LossByName(const std::string& name);
COHORT_EXPORT std::vector<std::string> LossNames();

// An argument of Compile: a loss or its name.
class COHORT_EXPORT LossArgument {
 public:
  LossArgument() = default;
  LossArgument(LossPtr loss) : loss_(std::move(loss)) {}
  LossArgument(const char* name) : loss_(LossByName(name)) {}
  LossArgument(const std::string& name) : loss_(LossByName(name)) {}
  const LossPtr& get() const { return loss_; }
  explicit operator bool() const { return loss_ != nullptr; }

 private:
  LossPtr loss_;
};

// Returns, as float32 [batch], the weight of each example's class. The weight is 1 for classes that `weights` does not
// have. y_true has class numbers as for SparseCategoricalCrossentropy, or is one-hot [batch, classes] with classes > 1.
// Throws InvalidArgumentError if `weights` has a negative class.
COHORT_EXPORT Output ClassWeights(const std::map<int64_t, double>& weights, const Output& y_true);

}  // namespace cohort::keras
