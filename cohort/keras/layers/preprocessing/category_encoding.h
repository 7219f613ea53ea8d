// What the output modes of preprocessing_layers.h make of indices. Internal to keras/.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::keras {

// The longest vector that a mode makes.
inline constexpr int64_t kMostDepth = int64_t{1} << 24;

// Throws InvalidArgumentError, which names `layer`, unless `mode` is "one_hot", "multi_hot" or "count", or is "int" or
// "tf_idf" and allowed.
void CheckOutputMode(const std::string& mode, const char* layer, bool allows_int = true, bool allows_tf_idf = false);
// Throws InvalidArgumentError for a depth above kMostDepth.
void CheckDepth(int64_t depth, const std::string& mode);
// Returns the result of the mode for `indices` (int32 or int64): see preprocessing_layers.h. An index outside of [0,
// depth) is left out. Throws InvalidArgumentError for indices [batch] in the modes "multi_hot" and "count", and for a
// depth above kMostDepth in all modes but "int".
Output Encoded(const Output& indices, int64_t depth, const std::string& mode);

}  // namespace cohort::keras
