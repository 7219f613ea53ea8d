// Keras's names of paddings as the ops have them. Internal to keras/.
#pragma once

#include <string>

namespace cohort::keras {

// "same" -> "SAME", "valid" -> "VALID". Throws InvalidArgumentError for anything else.
std::string OpPadding(const std::string& padding);

}  // namespace cohort::keras
