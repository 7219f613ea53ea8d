// Checks that layers make on their inputs, so that all errors have the same wording. LayerInstance adds the layer's
// name. Internal to keras/.
#pragma once

#include <cstdint>

#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// Returns the only input. Throws InvalidArgumentError if there is not exactly one.
const LayerInput& OnlyInput(const std::vector<LayerInput>& inputs);
// Throws InvalidArgumentError if the input is strings. `layer` is the layer's class. It looks rows of a table up.
void CheckIndices(const LayerInput& input, const char* layer);
// Throws InvalidArgumentError unless the input's rank is known and equal to `rank`. `meaning` describes the dimensions:
// "[batch, in]".
void CheckInputRank(const LayerInput& input, int rank, const char* meaning);
// Returns the size of dimension `axis`; a negative axis counts from the end. Throws InvalidArgumentError if it is not
// known.
int64_t KnownDim(const LayerInput& input, int axis);
// Returns `shape` as integers for ops::Reshape, with -1 for an unknown batch dimension. Throws InvalidArgumentError if
// another dimension is unknown.
std::vector<int64_t> ReshapeDims(const Shape& shape);

}  // namespace cohort::keras
