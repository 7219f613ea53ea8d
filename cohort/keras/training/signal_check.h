// The signal check: how large activations and gradients are, layer by layer, before the first training step. Where the
// signal dies or explodes on its way, nothing can be learned, and the loss alone does not say why.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/shape.h"

namespace cohort::keras {

// Roots of mean squares. Infinite where a value is infinite or not a number.
struct COHORT_EXPORT LayerSignal {
  std::string layer;           // path, "conv2d"
  std::string class_name;      // "Conv2D"
  Shape shape;                 // of the output
  double activation = 0;       // of the layer's output; NaN: it is of integers
  double gradient = 0;         // of d loss / d output; NaN where none flows
  double weight = 0;           // of the kernels that are trained (weights of rank 2 and more); NaN: there are none
  double weight_gradient = 0;  // of d loss / d kernels; NaN: there is none
  bool keras_fans = false;     // has a depthwise kernel whose fans are counted by Keras's rule
};

struct COHORT_EXPORT SignalReport {
  double loss = 0;
  std::vector<LayerSignal> layers;  // in the order of the computation

  // What is wrong, with numbers, layer and remedy; empty: nothing. Rules: NaN or infinity anywhere; an input
  // of zeros alone; an activation whose
  // rms has fallen under 1e-3, or risen over 1e3, of the rms of the model's input; kernels of which none has a gradient
  // that is 1e-5 of its own size or more.
  std::vector<std::string> Problems() const;
  // A table with one line a layer, and the problems below it.
  std::string ToString() const;
};

}  // namespace cohort::keras
