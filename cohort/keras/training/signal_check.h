// The signal check: measures how large activations and gradients are, layer by layer, before the first training step.
// If they become too small or too large on their way through the layers, the model cannot learn, and the loss does not
// show why.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/shape.h"

namespace cohort::keras {

// The measurements of one layer. Each measurement is the root of the mean square of some values. It is infinite if one
// of these values is infinite or NaN.
struct COHORT_EXPORT LayerSignal {
  std::string layer;           // path, "conv2d"
  std::string class_name;      // "Conv2D"
  Shape shape;                 // of the output
  double activation = 0;       // of the layer's output; NaN: the output is of integers
  double gradient = 0;         // of d loss / d output; NaN: there is none
  double weight = 0;           // of the trained kernels (weights of rank 2 and more); NaN: there are none
  double weight_gradient = 0;  // of d loss / d kernels; NaN: there is none
  bool keras_fans = false;     // true: a depthwise kernel uses Keras's rule for fans (DepthwiseFans)
};

// The measurements of all layers in one step.
struct COHORT_EXPORT SignalReport {
  double loss = 0;
  std::vector<LayerSignal> layers;  // in the order of the computation

  // Returns one text for each problem, with numbers, layer and remedy. These are problems:
  // - A value is NaN or infinite.
  // - An input has only zeros.
  // - The rms (root of the mean square) of an activation is less than 1e-3, or more than 1e3, of the rms of the model's
  //   input.
  // - No kernel of the model has a gradient that is at least 1e-5 of the kernel's own size.
  std::vector<std::string> Problems() const;
  // Returns a table with one line for each layer, and the problems below it.
  std::string ToString() const;
};

}  // namespace cohort::keras
