// The losses of loss.h that compare probabilities. Each class computes its value for each example; the base class
// (loss.cc) sums them. A cross-entropy looks for the logits behind its predictions (crossentropy.h), because computing
// with logits is exact.
#include <optional>

#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"

namespace cohort::keras {
namespace {

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
    if (const auto logits = SoftmaxLogits(*this, y_pred, from_logits_)) return *logits;
    return ops::Log(ClipProbabilities(CastTo(y_pred, DType::kFloat32)));
  }
  const bool from_logits_;
};

class CategoricalLoss final : public Loss {
 public:
  explicit CategoricalLoss(const CrossentropyOptions& options)
      : Loss(NameOr(options.name, "categorical_crossentropy"), options.reduction),
        from_logits_(options.from_logits),
        smoothing_(CheckedSmoothing(name(), options.label_smoothing)) {}

  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    CheckOneHot(*this, y_true, y_pred);
    const Output targets = SmoothedClasses(*this, smoothing_, y_true, y_pred);
    const std::optional<Output> logits = SoftmaxLogits(*this, y_pred, from_logits_);
    if (logits) return ops::SoftmaxCrossEntropyWithLogits({.labels = targets, .logits = *logits});
    const Output raw = CastTo(y_pred, DType::kFloat32);
    const Output probabilities = ClipProbabilities(ops::Div(raw, ops::Sum(raw, {-1}, true)));
    return -ops::Sum(ops::Mul(targets, ops::Log(probabilities)), {-1});
  }
  ConfigValue Serialized() const override {
    return LossInFile(*this, "CategoricalCrossentropy",
                      {{"from_logits", from_logits_}, {"label_smoothing", smoothing_}, {"axis", -1}});
  }
  static LossPtr FromConfig(ConfigReader& reader) { return CategoricalCrossentropy(ReadCrossentropy(reader)); }

 private:
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
    const Output targets = SmoothedFlags(smoothing_, y_true);
    if (const auto logits = SigmoidLogits(*this, y_pred, from_logits_)) {
      return ops::SigmoidCrossEntropyWithLogits({.labels = targets, .logits = *logits});
    }
    const Output p = ClipProbabilities(CastTo(y_pred, DType::kFloat32));
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
      return ops::ClipByValue(number, ops::ScalarLike(number, kLossEpsilon), ops::ScalarLike(number, 1.0));
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
