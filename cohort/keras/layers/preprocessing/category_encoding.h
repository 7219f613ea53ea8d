// What the output modes of preprocessing_layers.h make of indices. Internal to keras/.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::keras {

// The longest vector that a mode makes.
inline constexpr int64_t kMostDepth = int64_t{1} << 24;

// Throws InvalidArgumentError, which names `layer`, unless `mode` is a mode, and if it is "int" although `allows_int`
// is false.
void CheckOutputMode(const std::string& mode, const char* layer, bool allows_int = true);
// Returns the result of the mode for `indices` (int32 or int64): see preprocessing_layers.h. An index outside of [0,
// depth) is left out. Throws InvalidArgumentError for indices [batch] in the modes "multi_hot" and "count", and for a
// depth above kMostDepth in all modes but "int".
Output Encoded(const Output& indices, int64_t depth, const std::string& mode);

}  // namespace cohort::keras
