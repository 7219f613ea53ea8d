// Converts Keras's names of paddings to those of the ops. Internal to keras/.
#pragma once

#include <string>

namespace cohort::keras {

// Returns "SAME" for "same" and "VALID" for "valid". Throws InvalidArgumentError for another name.
std::string OpPadding(const std::string& padding);

}  // namespace cohort::keras
