// Keras's two spellings of a name: of the class, "GlorotUniform", and as a string, "glorot_uniform".
#pragma once

#include <string>

namespace cohort::keras {

// "SeparableConv2D" -> "separable_conv2d", "MaxPooling2D" -> "max_pooling2d", "L2" -> "l2": as Keras names layers.
std::string SnakeCase(const std::string& class_name);

}  // namespace cohort::keras
