// The losses of loss.h that compare probabilities. Each class computes its value for each example; the base class
// (loss.cc) sums them. A cross-entropy looks for the logits behind its predictions (FindLogits), because computing with
// logits is exact.
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"

namespace cohort::keras {
namespace {

Output Number(const Output& like, double value) { return ops::ScalarLike(like, value); }

Output Clip(const Output& probabilities) {
  return ops::ClipByValue(probabilities, Number(probabilities, kLossEpsilon),
                          Number(probabilities, 1.0 - kLossEpsilon));
}

// Returns the logits that `loss` computes with, or nullopt if `y_pred` has to be taken for probabilities. If the
// activation `op` made `y_pred`, possibly through nodes that only pass its result on or convert it, the logits are the
// activation's input, whatever `from_logits` says: to apply `op` to its own result would be silently wrong. Warns if
// `from_logits` contradicts the model in this way, as Keras does.
std::optional<Output> FindLogits(const Loss& loss, const Output& y_pred, const char* op, bool from_logits) {
  Output value = y_pred;
  while (value.node->op_name() == "Identity" || value.node->op_name() == "Cast") value = value.node->input(0);
  if (value.node->op_name() == op) {
    if (from_logits) {
      LogWarning("keras", "loss '", loss.name(), "' has from_logits=true, but the predictions are the result of a ", op,
                 " ('", value.node->name(), "'), not logits; the loss uses the input of the ", op,
                 ". Remove the activation from the model or from_logits from the loss");
    }
    return CastTo(value.node->input(0), DType::kFloat32);
  }
  if (from_logits) return CastTo(y_pred, DType::kFloat32);
  return std::nullopt;
}

CrossentropyOptions ReadCrossentropy(ConfigReader& reader) {
  CrossentropyOptions options;
  ReadLossOptions(reader, options.name, options.reduction);
  reader.Read("from_logits", options.from_logits);
  reader.Read("label_smoothing", options.label_smoothing);
  reader.OnlyDefault("axis", -1);
  return options;
}

class SparseCategoricalLoss final : public Loss {
 public:
  explicit SparseCategoricalLoss(const SparseCrossentropyOptions& options)
      : Loss(NameOr(options.name, "sparse_categorical_crossentropy"), options.reduction),
        from_logits_(options.from_logits) {}

  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    const Output labels = SparseLabels(y_true, y_pred);
    const Shape& shape = y_pred.shape();
    if (shape.has_rank() && (shape.rank() < 2 || !labels.shape().IsCompatibleWith(shape.Sub(0, shape.rank() - 1)))) {
      FailShapes(name(), "integer labels [batch] (or [batch, 1]) for predictions [batch, classes]", y_true, y_pred,
                 "; for one-hot targets use categorical_crossentropy");
    }
    return ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = Logits(y_pred)});
  }
  ConfigValue Serialized() const override {
    return LossInFile(*this, "SparseCategoricalCrossentropy",
                      {{"from_logits", from_logits_}, {"ignore_class", nullptr}});
  }
  static LossPtr FromConfig(ConfigReader& reader) {
    SparseCrossentropyOptions options;
    ReadLossOptions(reader, options.name, options.reduction);
    reader.Read("from_logits", options.from_logits);
    reader.OnlyDefault("ignore_class", nullptr);
    reader.OnlyDefault("axis", -1);
    return SparseCategoricalCrossentropy(options);
  }

 private:
  Output Logits(const Output& y_pred) const {
    if (const auto logits = FindLogits(*this, y_pred, "Softmax", from_logits_)) return *logits;
    return ops::Log(Clip(CastTo(y_pred, DType::kFloat32)));
  }
  const bool from_logits_;
};

double CheckedSmoothing(const std::string& loss, double smoothing) {
  if (smoothing >= 0.0 && smoothing <= 1.0) return smoothing;
  throw InvalidArgumentError(StrCat("[keras/loss] ", loss, " expected label_smoothing in [0, 1]; got ", smoothing));
}

class CategoricalLoss final : public Loss {
 public:
  explicit CategoricalLoss(const CrossentropyOptions& options)
      : Loss(NameOr(options.name, "categorical_crossentropy"), options.reduction),
        from_logits_(options.from_logits),
        smoothing_(CheckedSmoothing(name(), options.label_smoothing)) {}

  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    const Shape& shape = y_pred.shape();
    if (!y_true.shape().IsCompatibleWith(shape) || (shape.has_rank() && shape.rank() < 2)) {
      FailShapes(name(), "one-hot targets of the shape of the predictions [batch, classes]", y_true, y_pred,
                 "; for integer labels use sparse_categorical_crossentropy");
    }
    const Output targets = Smoothed(CastTo(y_true, DType::kFloat32), y_pred, y_true);
    const std::optional<Output> logits = FindLogits(*this, y_pred, "Softmax", from_logits_);
    if (logits) return ops::SoftmaxCrossEntropyWithLogits({.labels = targets, .logits = *logits});
    const Output raw = CastTo(y_pred, DType::kFloat32);
    const Output probabilities = Clip(ops::Div(raw, ops::Sum(raw, {-1}, true)));
    return -ops::Sum(ops::Mul(targets, ops::Log(probabilities)), {-1});
  }
  ConfigValue Serialized() const override {
    return LossInFile(*this, "CategoricalCrossentropy",
                      {{"from_logits", from_logits_}, {"label_smoothing", smoothing_}, {"axis", -1}});
  }
  static LossPtr FromConfig(ConfigReader& reader) { return CategoricalCrossentropy(ReadCrossentropy(reader)); }

 private:
  Output Smoothed(Output targets, const Output& y_pred, const Output& y_true) const {
    if (smoothing_ == 0.0) return targets;
    const Shape& shape = y_pred.shape();
    const int64_t classes = shape.has_rank() ? shape.dim(shape.rank() - 1) : -1;
    if (classes < 0) {
      FailShapes(name(), "a known number of classes for label_smoothing", y_true, y_pred, "");
    }
    return targets * static_cast<float>(1.0 - smoothing_) +
           static_cast<float>(smoothing_ / static_cast<double>(classes));
  }

  const bool from_logits_;
  const double smoothing_;
};

class BinaryLoss final : public ElementwiseLoss {
 public:
  explicit BinaryLoss(const CrossentropyOptions& options)
      : ElementwiseLoss(NameOr(options.name, "binary_crossentropy"), options.reduction),
        from_logits_(options.from_logits),
        smoothing_(CheckedSmoothing(name(), options.label_smoothing)) {}
  ConfigValue Serialized() const override {
    return LossInFile(*this, "BinaryCrossentropy",
                      {{"from_logits", from_logits_}, {"label_smoothing", smoothing_}, {"axis", -1}});
  }
  static LossPtr FromConfig(ConfigReader& reader) { return BinaryCrossentropy(ReadCrossentropy(reader)); }

 protected:
  Output Elements(const Output& y_true, const Output& y_pred) const override {
    Output targets = y_true;
    if (smoothing_ != 0.0) {
      targets = targets * static_cast<float>(1.0 - smoothing_) + static_cast<float>(0.5 * smoothing_);
    }
    if (const auto logits = FindLogits(*this, y_pred, "Sigmoid", from_logits_)) {
      return ops::SigmoidCrossEntropyWithLogits({.labels = targets, .logits = *logits});
    }
    const Output p = Clip(CastTo(y_pred, DType::kFloat32));
    return -(targets * ops::Log(p) + (1.0f - targets) * ops::Log(1.0f - p));
  }

 private:
  const bool from_logits_;
  const double smoothing_;
};

class DivergenceLoss final : public Loss {
 public:
  explicit DivergenceLoss(const LossOptions& options)
      : Loss(NameOr(options.name, "kl_divergence"), options.reduction) {}
  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    CheckRows(name(), y_true, y_pred);
    const auto clipped = [](const Output& x) {
      const Output number = CastTo(x, DType::kFloat32);
      return ops::ClipByValue(number, Number(number, kLossEpsilon), Number(number, 1.0));
    };
    const Output t = clipped(y_true);
    return ops::Sum(ops::Mul(t, ops::Log(ops::Div(t, clipped(y_pred)))), {-1});
  }
  ConfigValue Serialized() const override { return LossInFile(*this, "KLDivergence", {}); }
  static LossPtr FromConfig(ConfigReader& reader) { return KLDivergence(ReadPlainLoss(reader)); }
};

}  // namespace

LossPtr SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options) {
  return std::make_shared<SparseCategoricalLoss>(options);
}
LossPtr CategoricalCrossentropy(const CrossentropyOptions& options) {
  return std::make_shared<CategoricalLoss>(options);
}
LossPtr BinaryCrossentropy(const CrossentropyOptions& options) { return std::make_shared<BinaryLoss>(options); }
LossPtr KLDivergence(const LossOptions& options) { return std::make_shared<DivergenceLoss>(options); }

std::vector<LossMaker> ProbabilityLossMakers() {
  return {{"SparseCategoricalCrossentropy", SparseCategoricalLoss::FromConfig},
          {"CategoricalCrossentropy", CategoricalLoss::FromConfig},
          {"BinaryCrossentropy", BinaryLoss::FromConfig},
          {"KLDivergence", DivergenceLoss::FromConfig}};
}

}  // namespace cohort::keras
