// The network of separable convolutions on Fashion-MNIST that several examples train, and its images.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/cohort.h"

namespace examples {

// Images [n, 28, 28, 1], float32, and labels [n], uint8.
struct ImagePart {
  cohort::Tensor images, labels;

  int64_t size() const { return labels.num_elements(); }
  cohort::keras::ModelData data() const { return {images, labels}; }
};

// The first 5000 images of the training files are for validation, the others for training. Pixels are scaled by the
// mean and the deviation of the images for training.
struct ScaledImages {
  ImagePart train, validation, test;
  bool generated = false;
};

// Loads the images with LoadImages(data_dir, say). If `max_images` is above 0, each part keeps at most so many.
ScaledImages LoadScaledImages(const std::string& data_dir, int64_t max_images, bool say);

// Makes the network: a convolution and five separable ones of 128, 256 and 512 filters with three pools, and two dense
// layers. It has 2,887,306 parameters.
cohort::keras::Sequential SeparableNetwork(cohort::keras::DepthwiseFans fans,
                                           const cohort::keras::ModelOptions& options);

}  // namespace examples
