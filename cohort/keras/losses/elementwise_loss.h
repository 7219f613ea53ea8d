// The bases of losses whose targets have the shape of the predictions, and the checks of their shapes. Internal to
// keras/.
#pragma once

#include <string>

#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras {

constexpr double kLossEpsilon = 1e-7;  // keras.config.epsilon()

// Returns `name`, or `fallback` if it is empty.
std::string NameOr(const std::string& name, const char* fallback);

// Throws InvalidArgumentError that has both shapes. `advice` is empty, or begins with "; ".
[[noreturn]] void FailShapes(const std::string& loss, const char* expected, const Output& y_true, const Output& y_pred,
                             const char* advice);

// Throws InvalidArgumentError if the shapes of y_true and y_pred are not compatible.
void CheckSameShape(const std::string& loss, const Output& y_true, const Output& y_pred);

// Throws InvalidArgumentError if the shapes are not compatible, or have no last axis [batch, ..., outputs] to sum over.
void CheckRows(const std::string& loss, const Output& y_true, const Output& y_pred);

// Reads the options of a loss that has only name and reduction.
LossOptions ReadPlainLoss(ConfigReader& reader);

// Losses that are a mean over the last axis of something element by element.
class ElementwiseLoss : public Loss {
 public:
  Output PerExample(const Output& y_true, const Output& y_pred) const final;

 protected:
  using Loss::Loss;
  // Returns float32 values with the shape of y_pred. y_true is float32. y_pred has the dtype that the model gives it.
  virtual Output Elements(const Output& y_true, const Output& y_pred) const = 0;
};

// What makes a loss without options of its own: its class and default name in Keras, and its formula. y_true and y_pred
// are float32, and so is the result, which has their shape.
struct PlainLossKind {
  const char* class_name;
  const char* default_name;
  Output (*elements)(const Output& y_true, const Output& y_pred);
};

// Returns the loss that is the mean over the last axis of kind.elements. `kind` must live as long as the loss.
LossPtr PlainLoss(const PlainLossKind& kind, const LossOptions& options);

}  // namespace cohort::keras
