// The focal cross-entropies: a factor (1 - p)^gamma, with the probability p of what is right, makes examples count less
// that are predicted well already. As the other cross-entropies, they look for the logits behind their predictions.
#include <cmath>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"

namespace cohort::keras {
namespace {

double CheckedGamma(const std::string& loss, double gamma) {
  if (gamma >= 0.0 && std::isfinite(gamma)) return gamma;
  throw InvalidArgumentError(StrCat("[keras/loss] ", loss, " expected gamma >= 0; got ", gamma));
}

// Returns values * (1 - p)^gamma.
Output Focused(const Output& values, const Output& p, double gamma) {
  if (gamma == 0.0) return values;  // the derivative of Pow would be 0 * inf for p = 1
  // Pow with an exponent below 1 has an infinite derivative at 0.
  const Output rest = gamma < 1.0 ? ops::Maximum(1.0f - p, 1e-7f) : 1.0f - p;
  return ops::Mul(values, gamma == 2.0 ? ops::Square(rest) : ops::Pow(rest, gamma));
}

class BinaryFocalLoss final : public ElementwiseLoss {
 public:
  explicit BinaryFocalLoss(const BinaryFocalCrossentropyOptions& options)
      : ElementwiseLoss(NameOr(options.name, "binary_focal_crossentropy"), options.reduction), options_(options) {
    CheckedGamma(name(), options.gamma);
    CheckedSmoothing(name(), options.label_smoothing);
  }
  ConfigValue Serialized() const override {
    return LossInFile(*this, "BinaryFocalCrossentropy",
                      {{"from_logits", options_.from_logits},
                       {"label_smoothing", options_.label_smoothing},
                       {"axis", -1},
                       {"apply_class_balancing", options_.apply_class_balancing},
                       {"alpha", options_.alpha},
                       {"gamma", options_.gamma}});
  }
  static LossPtr FromConfig(ConfigReader& reader) {
    BinaryFocalCrossentropyOptions options;
    ReadLossOptions(reader, options.name, options.reduction);
    reader.Read("from_logits", options.from_logits);
    reader.Read("label_smoothing", options.label_smoothing);
    reader.Read("apply_class_balancing", options.apply_class_balancing);
    reader.Read("alpha", options.alpha);
    reader.Read("gamma", options.gamma);
    reader.OnlyDefault("axis", -1);
    return BinaryFocalCrossentropy(options);
  }

 protected:
  Output Elements(const Output& y_true, const Output& y_pred) const override {
    const Output t = SmoothedFlags(options_.label_smoothing, y_true);
    Output p = CastTo(y_pred, DType::kFloat32);
    Output crossentropy;
    if (const auto logits = SigmoidLogits(*this, y_pred, options_.from_logits)) {
      p = ops::Sigmoid(*logits);
      crossentropy = ops::SigmoidCrossEntropyWithLogits({.labels = t, .logits = *logits});
    } else {
      const Output clipped = ClipProbabilities(p);
      crossentropy = -(t * ops::Log(clipped) + (1.0f - t) * ops::Log(1.0f - clipped));
    }
    const Output values = Focused(crossentropy, t * p + (1.0f - t) * (1.0f - p), options_.gamma);
    if (!options_.apply_class_balancing) return values;
    const auto alpha = static_cast<float>(options_.alpha);
    return (t * alpha + (1.0f - t) * (1.0f - alpha)) * values;
  }

 private:
  const BinaryFocalCrossentropyOptions options_;
};

class CategoricalFocalLoss final : public Loss {
 public:
  explicit CategoricalFocalLoss(const CategoricalFocalCrossentropyOptions& options)
      : Loss(NameOr(options.name, "categorical_focal_crossentropy"), options.reduction), options_(options) {
    CheckedGamma(name(), options.gamma);
    CheckedSmoothing(name(), options.label_smoothing);
  }
  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    CheckOneHot(*this, y_true, y_pred);
    const Output targets = SmoothedClasses(*this, options_.label_smoothing, y_true, y_pred);
    Output p, logarithm;
    if (const auto logits = SoftmaxLogits(*this, y_pred, options_.from_logits)) {
      p = ops::Softmax(*logits);
      logarithm = ops::LogSoftmax(*logits);
    } else {
      const Output raw = CastTo(y_pred, DType::kFloat32);
      p = ClipProbabilities(ops::Div(raw, ops::Sum(raw, {-1}, true)));
      logarithm = ops::Log(p);
    }
    return -ops::Sum(Focused(ops::Mul(targets, logarithm), p, options_.gamma), {-1}) *
           static_cast<float>(options_.alpha);
  }
  ConfigValue Serialized() const override {
    return LossInFile(*this, "CategoricalFocalCrossentropy",
                      {{"from_logits", options_.from_logits},
                       {"label_smoothing", options_.label_smoothing},
                       {"axis", -1},
                       {"alpha", options_.alpha},
                       {"gamma", options_.gamma}});
  }
  static LossPtr FromConfig(ConfigReader& reader) {
    CategoricalFocalCrossentropyOptions options;
    ReadLossOptions(reader, options.name, options.reduction);
    reader.Read("from_logits", options.from_logits);
    reader.Read("label_smoothing", options.label_smoothing);
    reader.Read("alpha", options.alpha);
    reader.Read("gamma", options.gamma);
    reader.OnlyDefault("axis", -1);
    return CategoricalFocalCrossentropy(options);
  }

 private:
  const CategoricalFocalCrossentropyOptions options_;
};

}  // namespace

LossPtr BinaryFocalCrossentropy(const BinaryFocalCrossentropyOptions& options) {
  return std::make_shared<BinaryFocalLoss>(options);
}
LossPtr CategoricalFocalCrossentropy(const CategoricalFocalCrossentropyOptions& options) {
  return std::make_shared<CategoricalFocalLoss>(options);
}

std::vector<LossMaker> FocalLossMakers() {
  return {{"BinaryFocalCrossentropy", BinaryFocalLoss::FromConfig},
          {"CategoricalFocalCrossentropy", CategoricalFocalLoss::FromConfig}};
}

}  // namespace cohort::keras
