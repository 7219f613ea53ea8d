#include "cohort/keras/losses/elementwise_loss.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/loss_config.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

class KindLoss final : public ElementwiseLoss {
 public:
  KindLoss(const PlainLossKind& kind, const LossOptions& options)
      : ElementwiseLoss(NameOr(options.name, kind.default_name), options.reduction), kind_(kind) {}
  ConfigValue Serialized() const override { return LossInFile(*this, kind_.class_name, {}); }

 protected:
  Output Elements(const Output& y_true, const Output& y_pred) const override {
    return kind_.elements(y_true, CastTo(y_pred, DType::kFloat32));
  }

 private:
  const PlainLossKind& kind_;
};

}  // namespace

std::string NameOr(const std::string& name, const char* fallback) { return name.empty() ? fallback : name; }

void FailShapes(const std::string& loss, const char* expected, const Output& y_true, const Output& y_pred,
                const char* advice) {
  throw InvalidArgumentError(StrCat("[keras/loss] ", loss, " expected ", expected, "; got y_true ", y_true.shape(),
                                    " and y_pred ", y_pred.shape(), advice));
}

void CheckSameShape(const std::string& loss, const Output& y_true, const Output& y_pred) {
  if (y_true.shape().IsCompatibleWith(y_pred.shape())) return;
  FailShapes(loss, "targets of the shape of the predictions", y_true, y_pred, "");
}

void CheckRows(const std::string& loss, const Output& y_true, const Output& y_pred) {
  CheckSameShape(loss, y_true, y_pred);
  const Shape& shape = y_pred.shape();
  if (!shape.has_rank() || shape.rank() >= 2) return;
  FailShapes(loss, "predictions [batch, ..., outputs]", y_true, y_pred,
             "; add a dimension for the outputs of an example");
}

LossOptions ReadPlainLoss(ConfigReader& reader) {
  LossOptions options;
  ReadLossOptions(reader, options.name, options.reduction);
  return options;
}

Output ElementwiseLoss::PerExample(const Output& y_true, const Output& y_pred) const {
  CheckSameShape(name(), y_true, y_pred);
  const Output elements = Elements(CastTo(y_true, DType::kFloat32), y_pred);
  // In a vector, each value is an example.
  return elements.shape().has_rank() && elements.shape().rank() < 2 ? elements : ops::Mean(elements, {-1});
}

LossPtr PlainLoss(const PlainLossKind& kind, const LossOptions& options) {
  return std::make_shared<KindLoss>(kind, options);
}

}  // namespace cohort::keras
