// What layers check of their inputs, with one wording. LayerInstance adds which layer it was. Internal to keras/.
#pragma once

#include <cstdint>

#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// The only input. Throws InvalidArgumentError where there are more or none.
const LayerInput& OnlyInput(const std::vector<LayerInput>& inputs);
// Throws InvalidArgumentError unless the rank is known and `rank`; `meaning` shows the dimensions: "[batch, in]".
void CheckInputRank(const LayerInput& input, int rank, const char* meaning);
// The size of dimension `axis` (negative: from the end), which has to be known. Throws InvalidArgumentError.
int64_t KnownDim(const LayerInput& input, int axis);
// `shape` as integers for ops::Reshape: of unknown dimensions the batch alone, -1. Throws InvalidArgumentError where
// another one is unknown.
std::vector<int64_t> ReshapeDims(const Shape& shape);

}  // namespace cohort::keras
