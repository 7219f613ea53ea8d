// The losses of loss.h. Each class computes its value for each example; the base class (loss.cc) sums them. A
// cross-entropy looks for the logits behind its predictions (FindLogits), because computing with logits is exact.
#include <cmath>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"

namespace cohort::keras {
namespace {

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

std::string NameOr(const std::string& name, const char* fallback) { return name.empty() ? fallback : name; }

Output Number(const Output& like, double value) { return ops::ScalarLike(like, value); }

Output Clip(const Output& probabilities) {
  return ops::ClipByValue(probabilities, Number(probabilities, kEpsilon), Number(probabilities, 1.0 - kEpsilon));
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

[[noreturn]] void FailShapes(const std::string& loss, const char* expected, const Output& y_true, const Output& y_pred,
                             const char* advice) {
  throw InvalidArgumentError(StrCat("[keras/loss] ", loss, " expected ", expected, "; got y_true ", y_true.shape(),
                                    " and y_pred ", y_pred.shape(), advice));
}

CrossentropyOptions ReadCrossentropy(ConfigReader& reader) {
  CrossentropyOptions options;
  ReadLossOptions(reader, options.name, options.reduction);
  reader.Read("from_logits", options.from_logits);
  reader.Read("label_smoothing", options.label_smoothing);
  reader.OnlyDefault("axis", -1);
  return options;
}

LossOptions ReadPlainLoss(ConfigReader& reader) {
  LossOptions options;
  ReadLossOptions(reader, options.name, options.reduction);
  return options;
}

bool AreCompatible(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) >= 0 && b.dim(i) >= 0 && a.dim(i) != b.dim(i)) return false;
  }
  return true;
}

class SparseCategoricalLoss final : public Loss {
 public:
  explicit SparseCategoricalLoss(const SparseCrossentropyOptions& options)
      : Loss(NameOr(options.name, "sparse_categorical_crossentropy"), options.reduction),
        from_logits_(options.from_logits) {}

  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    const Output labels = SparseLabels(y_true, y_pred);
    const Shape& shape = y_pred.shape();
    if (shape.has_rank() && (shape.rank() < 2 || !AreCompatible(labels.shape(), shape.Sub(0, shape.rank() - 1)))) {
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
    if (!AreCompatible(y_true.shape(), shape) || (shape.has_rank() && shape.rank() < 2)) {
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

// Losses that are a mean over the last axis of something element by element.
class ElementwiseLoss : public Loss {
 public:
  Output PerExample(const Output& y_true, const Output& y_pred) const final {
    if (!AreCompatible(y_true.shape(), y_pred.shape())) {
      FailShapes(name(), "targets of the shape of the predictions", y_true, y_pred, "");
    }
    const Output elements = Elements(CastTo(y_true, DType::kFloat32), y_pred);
    // In a vector, each value is an example.
    return elements.shape().has_rank() && elements.shape().rank() < 2 ? elements : ops::Mean(elements, {-1});
  }

 protected:
  using Loss::Loss;
  virtual Output Elements(const Output& y_true, const Output& y_pred) const = 0;
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

class SquaredLoss final : public ElementwiseLoss {
 public:
  explicit SquaredLoss(const LossOptions& options)
      : ElementwiseLoss(NameOr(options.name, "mean_squared_error"), options.reduction) {}
  ConfigValue Serialized() const override { return LossInFile(*this, "MeanSquaredError", {}); }
  static LossPtr FromConfig(ConfigReader& reader) { return MeanSquaredError(ReadPlainLoss(reader)); }

 protected:
  Output Elements(const Output& y_true, const Output& y_pred) const override {
    return ops::SquaredDifference(y_true, CastTo(y_pred, DType::kFloat32));
  }
};

class AbsoluteLoss final : public ElementwiseLoss {
 public:
  explicit AbsoluteLoss(const LossOptions& options)
      : ElementwiseLoss(NameOr(options.name, "mean_absolute_error"), options.reduction) {}
  ConfigValue Serialized() const override { return LossInFile(*this, "MeanAbsoluteError", {}); }
  static LossPtr FromConfig(ConfigReader& reader) { return MeanAbsoluteError(ReadPlainLoss(reader)); }

 protected:
  Output Elements(const Output& y_true, const Output& y_pred) const override {
    return ops::Abs(ops::Sub(y_true, CastTo(y_pred, DType::kFloat32)));
  }
};

class HuberLoss final : public ElementwiseLoss {
 public:
  explicit HuberLoss(const HuberOptions& options)
      : ElementwiseLoss(NameOr(options.name, "huber_loss"), options.reduction), delta_(options.delta) {
    if (!(delta_ > 0.0) || !std::isfinite(delta_)) {
      throw InvalidArgumentError(StrCat("[keras/loss] ", name(), " expected delta > 0; got ", delta_));
    }
  }
  ConfigValue Serialized() const override { return LossInFile(*this, "Huber", {{"delta", delta_}}); }
  static LossPtr FromConfig(ConfigReader& reader) {
    HuberOptions options;
    ReadLossOptions(reader, options.name, options.reduction);
    reader.Read("delta", options.delta);
    return Huber(options);
  }

 protected:
  Output Elements(const Output& y_true, const Output& y_pred) const override {
    const Output size = ops::Abs(ops::Sub(y_true, CastTo(y_pred, DType::kFloat32)));
    const auto delta = static_cast<float>(delta_);
    const Output far = size * delta - static_cast<float>(0.5 * delta_ * delta_);
    return ops::SelectV2(ops::LessEqual(size, Number(size, delta_)), ops::Square(size) * 0.5f, far);
  }

 private:
  const double delta_;
};

}  // namespace

LossPtr SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options) {
  return std::make_shared<SparseCategoricalLoss>(options);
}
LossPtr CategoricalCrossentropy(const CrossentropyOptions& options) {
  return std::make_shared<CategoricalLoss>(options);
}
LossPtr BinaryCrossentropy(const CrossentropyOptions& options) { return std::make_shared<BinaryLoss>(options); }
LossPtr MeanSquaredError(const LossOptions& options) { return std::make_shared<SquaredLoss>(options); }
LossPtr MeanAbsoluteError(const LossOptions& options) { return std::make_shared<AbsoluteLoss>(options); }
LossPtr Huber(const HuberOptions& options) { return std::make_shared<HuberLoss>(options); }

LossPtr DeserializeLoss(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return LossByName(name);
  static const ConfigMakers<LossPtr> makers("loss",
                                            {{"SparseCategoricalCrossentropy", SparseCategoricalLoss::FromConfig},
                                             {"CategoricalCrossentropy", CategoricalLoss::FromConfig},
                                             {"BinaryCrossentropy", BinaryLoss::FromConfig},
                                             {"MeanSquaredError", SquaredLoss::FromConfig},
                                             {"MeanAbsoluteError", AbsoluteLoss::FromConfig},
                                             {"Huber", HuberLoss::FromConfig}});
  return MakeFromConfig("loss", makers, value);
}

}  // namespace cohort::keras
