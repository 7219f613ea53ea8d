// The losses of loss.h that compare numbers, and the hinges. Those without options of their own are a formula in a
// PlainLossKind; the others are classes.
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

Output AtLeast(const Output& x, double least) { return ops::Maximum(x, ops::ScalarLike(x, least)); }

Output PercentageError(const Output& t, const Output& p) {
  return ops::Abs(ops::Div(ops::Sub(t, p), AtLeast(ops::Abs(t), kLossEpsilon))) * 100.0f;
}

Output SquaredLogarithmicError(const Output& t, const Output& p) {
  const auto logarithm = [](const Output& x) { return ops::Log(AtLeast(x, kLossEpsilon) + 1.0f); };
  return ops::SquaredDifference(logarithm(p), logarithm(t));
}

// log(cosh(e)) = e + log(1 + exp(-2 e)) - log 2, which is finite for every finite e.
Output LogCoshError(const Output& t, const Output& p) {
  const Output error = ops::Sub(p, t);
  return error + ops::Softplus(error * -2.0f) - static_cast<float>(std::log(2.0));
}

// Returns the targets as -1 and 1 if all of them are 0 or 1, or else unchanged, as Keras does. If all targets of a part
// of a batch are 1, they stay 1. So a batch of -1 and 1 may be split in any way.
Output HingeTargets(const Output& t) {
  const Output binary = ops::LogicalOr(ops::Equal(t, ops::ScalarLike(t, 0.0)), ops::Equal(t, ops::ScalarLike(t, 1.0)));
  return ops::SelectV2(ops::All(binary), t * 2.0f - 1.0f, t);
}

Output HingeOf(const Output& t, const Output& p) { return AtLeast(1.0f - ops::Mul(HingeTargets(t), p), 0.0); }

constexpr PlainLossKind kSquaredErrorKind = {
    "MeanSquaredError", "mean_squared_error",
    [](const Output& t, const Output& p) { return ops::SquaredDifference(t, p); }};
constexpr PlainLossKind kAbsoluteErrorKind = {
    "MeanAbsoluteError", "mean_absolute_error",
    [](const Output& t, const Output& p) { return ops::Abs(ops::Sub(t, p)); }};
constexpr PlainLossKind kPercentageErrorKind = {"MeanAbsolutePercentageError", "mean_absolute_percentage_error",
                                                PercentageError};
constexpr PlainLossKind kSquaredLogarithmicErrorKind = {"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error",
                                                        SquaredLogarithmicError};
constexpr PlainLossKind kLogCoshKind = {"LogCosh", "log_cosh", LogCoshError};
constexpr PlainLossKind kPoissonKind = {"Poisson", "poisson", [](const Output& t, const Output& p) {
                                          return ops::Sub(p,
                                                          ops::Mul(t, ops::Log(p + static_cast<float>(kLossEpsilon))));
                                        }};
constexpr PlainLossKind kHingeKind = {"Hinge", "hinge", HingeOf};
constexpr PlainLossKind kSquaredHingeKind = {
    "SquaredHinge", "squared_hinge", [](const Output& t, const Output& p) { return ops::Square(HingeOf(t, p)); }};

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
    return ops::SelectV2(ops::LessEqual(size, ops::ScalarLike(size, delta_)), ops::Square(size) * 0.5f, far);
  }

 private:
  const double delta_;
};

// Returns the rows of `x` with length 1. A row that is shorter than kLossEpsilon is divided by kLossEpsilon, so that a
// row of zeros has finite values and gradients.
Output Normalized(const Output& x) {
  const Output squares = ops::Sum(ops::Square(x), {-1}, true);
  return ops::Mul(x, ops::Rsqrt(AtLeast(squares, kLossEpsilon * kLossEpsilon)));
}

class CosineLoss final : public Loss {
 public:
  explicit CosineLoss(const LossOptions& options)
      : Loss(NameOr(options.name, "cosine_similarity"), options.reduction) {}
  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    CheckRows(name(), y_true, y_pred);
    const Output products =
        ops::Mul(Normalized(CastTo(y_true, DType::kFloat32)), Normalized(CastTo(y_pred, DType::kFloat32)));
    return -ops::Sum(products, {-1});
  }
  ConfigValue Serialized() const override { return LossInFile(*this, "CosineSimilarity", {}); }
  static LossPtr FromConfig(ConfigReader& reader) {
    reader.OnlyDefault("axis", -1);
    return CosineSimilarity(ReadPlainLoss(reader));
  }
};

class CategoricalHingeLoss final : public Loss {
 public:
  explicit CategoricalHingeLoss(const LossOptions& options)
      : Loss(NameOr(options.name, "categorical_hinge"), options.reduction) {}
  Output PerExample(const Output& y_true, const Output& y_pred) const override {
    CheckRows(name(), y_true, y_pred);
    const Output t = CastTo(y_true, DType::kFloat32), p = CastTo(y_pred, DType::kFloat32);
    const Output right = ops::Sum(t * p, {-1});
    const Output largest_other = ops::Max((1.0f - t) * p, {-1});
    return AtLeast(largest_other - right + 1.0f, 0.0);
  }
  ConfigValue Serialized() const override { return LossInFile(*this, "CategoricalHinge", {}); }
};

// Makes a loss that has only name and reduction.
template <LossPtr (*kMake)(const LossOptions&)>
LossPtr MakePlain(ConfigReader& reader) {
  return kMake(ReadPlainLoss(reader));
}

}  // namespace

LossPtr MeanSquaredError(const LossOptions& options) { return PlainLoss(kSquaredErrorKind, options); }
LossPtr MeanAbsoluteError(const LossOptions& options) { return PlainLoss(kAbsoluteErrorKind, options); }
LossPtr MeanAbsolutePercentageError(const LossOptions& options) { return PlainLoss(kPercentageErrorKind, options); }
LossPtr MeanSquaredLogarithmicError(const LossOptions& options) {
  return PlainLoss(kSquaredLogarithmicErrorKind, options);
}
LossPtr LogCosh(const LossOptions& options) { return PlainLoss(kLogCoshKind, options); }
LossPtr Poisson(const LossOptions& options) { return PlainLoss(kPoissonKind, options); }
LossPtr Hinge(const LossOptions& options) { return PlainLoss(kHingeKind, options); }
LossPtr SquaredHinge(const LossOptions& options) { return PlainLoss(kSquaredHingeKind, options); }
LossPtr Huber(const HuberOptions& options) { return std::make_shared<HuberLoss>(options); }
LossPtr CategoricalHinge(const LossOptions& options) { return std::make_shared<CategoricalHingeLoss>(options); }
LossPtr CosineSimilarity(const LossOptions& options) { return std::make_shared<CosineLoss>(options); }

std::vector<LossMaker> RegressionLossMakers() {
  return {{kSquaredErrorKind.class_name, MakePlain<MeanSquaredError>},
          {kAbsoluteErrorKind.class_name, MakePlain<MeanAbsoluteError>},
          {kPercentageErrorKind.class_name, MakePlain<MeanAbsolutePercentageError>},
          {kSquaredLogarithmicErrorKind.class_name, MakePlain<MeanSquaredLogarithmicError>},
          {kLogCoshKind.class_name, MakePlain<LogCosh>},
          {kPoissonKind.class_name, MakePlain<Poisson>},
          {kHingeKind.class_name, MakePlain<Hinge>},
          {kSquaredHingeKind.class_name, MakePlain<SquaredHinge>},
          {"CategoricalHinge", MakePlain<CategoricalHinge>},
          {"Huber", HuberLoss::FromConfig},
          {"CosineSimilarity", CosineLoss::FromConfig}};
}

}  // namespace cohort::keras
