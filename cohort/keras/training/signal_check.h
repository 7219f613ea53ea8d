// The signal check: measures how large activations and gradients are, layer by layer, before the first training step.
// If they become too small or too large on their way through the layers, the model cannot learn, and the loss does not
// show why.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/shape.h"

namespace cohort::keras {

// The measurements of one layer. Each measurement is the rms (root of the mean square) of some values. A measurement is
// infinite if one of its values is infinite or NaN.
struct COHORT_EXPORT LayerSignal {
  std::string layer;           // path, "conv2d"
  std::string class_name;      // "Conv2D"
  Shape shape;                 // of the output
  double activation = 0;       // of the layer's output; NaN: the output is of integers
  double gradient = 0;         // of d loss / d output; NaN: there is none
  double weight = 0;           // of the kernel with the most elements (trainable, rank 2 or more); NaN: there is none
  double weight_gradient = 0;  // of d loss / d that kernel; NaN: there is none
  bool keras_fans = false;     // true: a depthwise kernel uses Keras's rule for fans (DepthwiseFans)
};

// The measurements of all layers in one step.
struct COHORT_EXPORT SignalReport {
  double loss = 0;
  std::vector<LayerSignal> layers;  // in the order of the computation

  // Returns texts about the problems, with numbers. Most texts name a layer and a remedy. If several layers have a bad
  // activation, there is a text about the first of them. These are problems:
  // - The loss, an activation or the gradient of a kernel is NaN or infinite.
  // - The model's first input has only zeros. Then activations and gradients are not judged.
  // - The rms of an activation is less than 1e-3 times, or more than 1e3 times, the rms of the model's first input. (An
  //   rms of exactly 0 is no problem.)
  // - The gradients of all kernels are too small: the rms of each is less than 1e-5 times the rms of its kernel. (If
  //   this is true for only some of the kernels, it is no problem.)
  std::vector<std::string> Problems() const;
  // Returns a table with one line for each layer, and the problems below it.
  std::string ToString() const;
};

}  // namespace cohort::keras
