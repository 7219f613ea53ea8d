#include "cohort/keras/losses/crossentropy.h"

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

// `op` is the activation.
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

}  // namespace

Output ClipProbabilities(const Output& probabilities) {
  return ops::ClipByValue(probabilities, ops::ScalarLike(probabilities, kLossEpsilon),
                          ops::ScalarLike(probabilities, 1.0 - kLossEpsilon));
}

std::optional<Output> SoftmaxLogits(const Loss& loss, const Output& y_pred, bool from_logits) {
  return FindLogits(loss, y_pred, "Softmax", from_logits);
}
std::optional<Output> SigmoidLogits(const Loss& loss, const Output& y_pred, bool from_logits) {
  return FindLogits(loss, y_pred, "Sigmoid", from_logits);
}

double CheckedSmoothing(const std::string& loss, double smoothing) {
  if (smoothing >= 0.0 && smoothing <= 1.0) return smoothing;
  throw InvalidArgumentError(StrCat("[keras/loss] ", loss, " expected label_smoothing in [0, 1]; got ", smoothing));
}

Output SmoothedFlags(double smoothing, const Output& y_true) {
  if (smoothing == 0.0) return y_true;
  return y_true * static_cast<float>(1.0 - smoothing) + static_cast<float>(0.5 * smoothing);
}

Output SmoothedClasses(const Loss& loss, double smoothing, const Output& y_true, const Output& y_pred) {
  const Output targets = CastTo(y_true, DType::kFloat32);
  if (smoothing == 0.0) return targets;
  const Shape& shape = y_pred.shape();
  const int64_t classes = shape.has_rank() ? shape.dim(shape.rank() - 1) : -1;
  if (classes < 0) {
    FailShapes(loss.name(), "a known number of classes for label_smoothing", y_true, y_pred, "");
  }
  return targets * static_cast<float>(1.0 - smoothing) + static_cast<float>(smoothing / static_cast<double>(classes));
}

void CheckOneHot(const Loss& loss, const Output& y_true, const Output& y_pred) {
  const Shape& shape = y_pred.shape();
  if (y_true.shape().IsCompatibleWith(shape) && !(shape.has_rank() && shape.rank() < 2)) return;
  FailShapes(loss.name(), "one-hot targets of the shape of the predictions [batch, classes]", y_true, y_pred,
             "; for integer labels use sparse_categorical_crossentropy");
}

}  // namespace cohort::keras
