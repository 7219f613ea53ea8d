// Converts between Keras's two forms of a name: the class, "GlorotUniform", and the string, "glorot_uniform".
#pragma once

#include <string>

namespace cohort::keras {

// Converts names as Keras names layers: "SeparableConv2D" to "separable_conv2d", "MaxPooling2D" to "max_pooling2d",
// "L2" to "l2".
std::string SnakeCase(const std::string& class_name);

}  // namespace cohort::keras
