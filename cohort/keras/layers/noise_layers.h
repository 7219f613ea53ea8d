// Layers that change their inputs at random in training, against overfitting. Outside of training they return their
// inputs. Dropout is in core_layers.h.
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// As Dropout, but whole channels are set to zero: channels of sequences [batch, steps, channels] (1D), or of images
// [batch, rows, columns, channels] (2D). Throw InvalidArgumentError for a rate outside of [0, 1).
COHORT_EXPORT LayerRef SpatialDropout1D(double rate, const DropoutOptions& options = {});
COHORT_EXPORT LayerRef SpatialDropout2D(double rate, const DropoutOptions& options = {});

// Adds a normal random number of mean 0 and standard deviation `stddev` to each element. Throws InvalidArgumentError
// for a stddev outside of [0, 1].
COHORT_EXPORT LayerRef GaussianNoise(double stddev, const DropoutOptions& options = {});
// Multiplies each element by a normal random number of mean 1 and standard deviation sqrt(rate / (1 - rate)). Throws
// InvalidArgumentError for a rate outside of [0, 1).
COHORT_EXPORT LayerRef GaussianDropout(double rate, const DropoutOptions& options = {});
// Sets each element to -1.7580993 with probability `rate`, which is the limit of the activation "selu" for small
// numbers. Then multiplies all elements by a number and adds another one, so that values of mean 0 and variance 1 keep
// both. Throws InvalidArgumentError for a rate outside of [0, 1).
COHORT_EXPORT LayerRef AlphaDropout(double rate, const DropoutOptions& options = {});

}  // namespace cohort::keras
