// What the losses that compare probabilities have in common. Internal to keras/.
#pragma once

#include <optional>
#include <string>

#include "cohort/keras/losses/loss.h"

namespace cohort::keras {

// Returns `probabilities` clipped to [1e-7, 1 - 1e-7].
Output ClipProbabilities(const Output& probabilities);

// Return the logits that `loss` computes with, or nullopt if `y_pred` has to be taken for probabilities. If a softmax
// (a sigmoid) made `y_pred`, possibly through nodes that only pass its result on or convert it, the logits are the
// activation's input, whatever `from_logits` says: to apply the activation to its own result would be silently wrong.
// Warn if `from_logits` contradicts the model in this way, as Keras does.
std::optional<Output> SoftmaxLogits(const Loss& loss, const Output& y_pred, bool from_logits);
std::optional<Output> SigmoidLogits(const Loss& loss, const Output& y_pred, bool from_logits);

// Returns `smoothing`. Throws InvalidArgumentError that names the loss if it is not in [0, 1].
double CheckedSmoothing(const std::string& loss, double smoothing);
// Returns targets of 0 and 1 moved towards 0.5. y_true is float32.
Output SmoothedFlags(double smoothing, const Output& y_true);
// Returns y_true as float32, moved towards a uniform distribution over the classes. Throws InvalidArgumentError if
// there is a smoothing, and the number of classes is not known.
Output SmoothedClasses(const Loss& loss, double smoothing, const Output& y_true, const Output& y_pred);

// Throws InvalidArgumentError unless y_true may be one-hot targets for predictions [batch, ..., classes].
void CheckOneHot(const Loss& loss, const Output& y_true, const Output& y_pred);

}  // namespace cohort::keras
