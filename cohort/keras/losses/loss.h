// Losses with Keras 3's names, arguments and defaults. A Loss is an immutable description, shared between threads; its
// members add nodes to the graph of their arguments. Losses stay (sum, weight) pairs until the whole global batch is
// summed over steps and replicas: loss = sum / weight. So an uneven last batch or split changes nothing.
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

// What the weight of a batch is: the number of loss values (kSumOverBatchSize, whatever the sample weights are), the
// sum of the sample weights (kMeanWithSampleWeight), or 1 once per global batch (kSum: `LossSums::weight` is not valid
// and the sum itself is the loss).
enum class Reduction { kSumOverBatchSize, kMeanWithSampleWeight, kSum };

// float32 scalars. Over replicas both are summed.
struct COHORT_EXPORT LossSums {
  Output sum;
  Output weight;
};

class COHORT_EXPORT Loss {
 public:
  virtual ~Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  // As the user or Keras calls it: "sparse_categorical_crossentropy".
  const std::string& name() const { return name_; }
  Reduction reduction() const { return reduction_; }

  // One float32 value an example: shape [batch], or [batch, d1, ...] where predictions have more than two dimensions.
  // y_pred float [batch, ..., outputs]; y_true of any number dtype, of y_pred's rank or one less, as the loss says.
  // Shapes that do not fit throw InvalidArgumentError here as far as they are known, else when the step runs.
  virtual Output PerExample(const Output& y_true, const Output& y_pred) const = 0;

  // PerExample with Keras's adjustments before and after: ranks that differ by a last dimension of 1 are made equal,
  // values are multiplied by `sample_weight` ([batch], [batch, 1] or PerExample's shape; not valid: 1) and summed.
  LossSums Sums(const Output& y_true, const Output& y_pred, const Output& sample_weight = {}) const;

  // As Keras's files hold it; serialization.h has the reverse. Throws UnimplementedError for a loss of the program's
  // own.
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
  // Whether predictions are logits or probabilities. If predictions come straight from a Softmax op (for the binary
  // loss: from a Sigmoid op), the loss uses the op's input in both cases, as Keras does: this is exact and does not
  // saturate. With `true` a warning then says that the model and the loss contradict each other.
  bool from_logits = false;
  double label_smoothing = 0.0;  // in [0, 1]; not for sparse labels
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";  // "": the loss's own
};
struct COHORT_EXPORT LossOptions {
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};
struct COHORT_EXPORT SparseCrossentropyOptions {
  bool from_logits = false;  // as above
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};
struct COHORT_EXPORT HuberOptions {
  double delta = 1.0;
  Reduction reduction = Reduction::kSumOverBatchSize;
  std::string name = "";
};

// -log p[label]; y_true integer [batch] or [batch, 1] (floats hold integers too), y_pred [batch, classes]. A label
// outside [0, classes) fails the step with InvalidArgumentError that names it.
COHORT_EXPORT LossPtr SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options = {});
// -sum_k t_k log p_k; t one-hot or a distribution [batch, classes], smoothed to t (1 - s) + s / classes.
COHORT_EXPORT LossPtr CategoricalCrossentropy(const CrossentropyOptions& options = {});
// Mean over the last axis of -(t log p + (1 - t) log(1 - p)); t smoothed to t (1 - s) + s / 2.
COHORT_EXPORT LossPtr BinaryCrossentropy(const CrossentropyOptions& options = {});
COHORT_EXPORT LossPtr MeanSquaredError(const LossOptions& options = {});   // mean over the last axis of (t - p)^2
COHORT_EXPORT LossPtr MeanAbsoluteError(const LossOptions& options = {});  // mean over the last axis of |t - p|
// Mean over the last axis of e^2 / 2 where |e| <= delta, else delta |e| - delta^2 / 2; e = t - p.
COHORT_EXPORT LossPtr Huber(const HuberOptions& options = {});
// A loss of the user's: `per_example` is Loss::PerExample.
COHORT_EXPORT LossPtr LossFromFunction(std::string name,
                                       std::function<Output(const Output& y_true, const Output& y_pred)> per_example,
                                       Reduction reduction = Reduction::kSumOverBatchSize);

// By Keras's names: class ("SparseCategoricalCrossentropy"), function ("sparse_categorical_crossentropy") or short
// ("mse"), with the defaults above. Throws InvalidArgumentError that lists the names there are.
COHORT_EXPORT LossPtr LossByName(const std::string& name);
COHORT_EXPORT std::vector<std::string> LossNames();

// What Compile takes: a loss or its name.
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

// float32 [batch]: the weight of each example's class, 1 for classes that are not named. y_true as for the sparse
// losses, or one-hot [batch, classes] with classes > 1. Throws InvalidArgumentError for a negative class.
COHORT_EXPORT Output ClassWeights(const std::map<int64_t, double>& weights, const Output& y_true);

}  // namespace cohort::keras
