// Dice and Tversky: how far two sets differ, for example the pixels of an object and those that were predicted. The
// sums over the axes are divided, so a loss without axes has one value for the whole part of a batch.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/array.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

using Axes = std::vector<int64_t>;

ConfigValue AxesInFile(const Axes& axes) {
  if (axes.empty()) return nullptr;
  if (axes.size() == 1) return axes[0];
  return ConfigValue::List(axes.begin(), axes.end());
}

void ReadAxes(ConfigReader& reader, Axes& axes) {
  reader.ReadBy("axis", [&](const ConfigValue& value) {
    if (!value.is_list()) {
      axes = {value.AsInt()};
      return;
    }
    axes.clear();
    for (const ConfigValue& axis : value.AsList()) axes.push_back(axis.AsInt());
  });
}

// Losses of which each value is made from sums over `axes`.
class OverlapLoss : public Loss {
 public:
  Output PerExample(const Output& y_true, const Output& y_pred) const final {
    CheckSameShape(name(), y_true, y_pred);
    CheckAxes(y_pred.shape());
    const Output values = Values(CastTo(y_true, DType::kFloat32), CastTo(y_pred, DType::kFloat32));
    // The sum of a whole part of a batch is its one value. In a mean, all examples have this value, so that parts
    // count by their sizes.
    if (!axes_.empty() || reduction() == Reduction::kSum) return values;
    return ops::Fill(ops::Slice(ops::ShapeOf(y_pred), {0}, {1}), values);
  }

 protected:
  OverlapLoss(std::string name, Reduction reduction, Axes axes)
      : Loss(std::move(name), reduction), axes_(std::move(axes)) {
    if (std::find(axes_.begin(), axes_.end(), 0) != axes_.end()) FailAxes();
  }
  const Axes& axes() const { return axes_; }
  Output SumOf(const Output& x) const { return axes_.empty() ? ops::Sum(x) : ops::Sum(x, axes_); }
  // Returns the values, which have the shape of y_pred without the axes. Both arguments are float32.
  virtual Output Values(const Output& t, const Output& p) const = 0;

 private:
  [[noreturn]] void FailAxes() const {
    throw InvalidArgumentError(StrCat("[keras/loss] ", name(),
                                      " expected axes behind the batch, which is axis 0; got {", StrJoin(axes_, ", "),
                                      "}; leave `axis` out for one value of the whole batch"));
  }
  void CheckAxes(const Shape& shape) const {
    if (!shape.has_rank()) return;
    for (const int64_t axis : axes_) {
      if (axis >= shape.rank() || axis <= -shape.rank()) FailAxes();
    }
  }
  const Axes axes_;
};

class DiceLoss final : public OverlapLoss {
 public:
  explicit DiceLoss(const DiceOptions& options)
      : OverlapLoss(NameOr(options.name, "dice"), options.reduction, options.axis) {}
  ConfigValue Serialized() const override { return LossInFile(*this, "Dice", {{"axis", AxesInFile(axes())}}); }
  static LossPtr FromConfig(ConfigReader& reader) {
    DiceOptions options;
    ReadLossOptions(reader, options.name, options.reduction);
    ReadAxes(reader, options.axis);
    return Dice(options);
  }

 protected:
  Output Values(const Output& t, const Output& p) const override {
    const Output sizes = SumOf(t) + SumOf(p) + static_cast<float>(kLossEpsilon);
    return 1.0f - 2.0f * SumOf(t * p) / sizes;
  }
};

class TverskyLoss final : public OverlapLoss {
 public:
  explicit TverskyLoss(const TverskyOptions& options)
      : OverlapLoss(NameOr(options.name, "tversky"), options.reduction, options.axis),
        alpha_(options.alpha),
        beta_(options.beta) {}
  ConfigValue Serialized() const override {
    return LossInFile(*this, "Tversky", {{"alpha", alpha_}, {"beta", beta_}, {"axis", AxesInFile(axes())}});
  }
  static LossPtr FromConfig(ConfigReader& reader) {
    TverskyOptions options;
    ReadLossOptions(reader, options.name, options.reduction);
    reader.Read("alpha", options.alpha);
    reader.Read("beta", options.beta);
    ReadAxes(reader, options.axis);
    return Tversky(options);
  }

 protected:
  Output Values(const Output& t, const Output& p) const override {
    const Output both = SumOf(t * p);
    const Output missed = SumOf((1.0f - p) * t) * static_cast<float>(alpha_);
    const Output wrong = SumOf(p * (1.0f - t)) * static_cast<float>(beta_);
    return 1.0f - both / (both + missed + wrong + static_cast<float>(kLossEpsilon));
  }

 private:
  const double alpha_, beta_;
};

}  // namespace

LossPtr Dice(const DiceOptions& options) { return std::make_shared<DiceLoss>(options); }
LossPtr Tversky(const TverskyOptions& options) { return std::make_shared<TverskyLoss>(options); }

std::vector<LossMaker> OverlapLossMakers() {
  return {{"Dice", DiceLoss::FromConfig}, {"Tversky", TverskyLoss::FromConfig}};
}

}  // namespace cohort::keras
