// Encodes weights in the format of Keras 3 (`model.weights.h5`): HDF5 with one group `<path>/vars` for each object that
// has variables. Its datasets are "0", "1", ..., or "idf_weights". See docs/formats.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::keras {

// One group of a weights file with its datasets.
struct COHORT_EXPORT WeightGroup {
  std::string path;            // "layers/dense_1", "optimizer"; "": the model itself
  std::string name;            // the object's name, for people; not read
  std::vector<Tensor> values;  // float32, float64, int32, int64, uint8, bool or bfloat16; may be empty
  // The weights of a vocabulary's indices, which Keras keeps beside the values under the name
  // "idf_weights". Undefined if there are none.
  Tensor idf_weights = {};
};

// Returns the bytes of a file with these groups. Throws InvalidArgumentError if a path occurs twice or if a dtype is
// not supported. Thread-safe; calls wait for each other.
COHORT_EXPORT std::string EncodeWeights(const std::vector<WeightGroup>& groups);

// Returns all groups, sorted by path. float16 is converted to float32, and other integers to int64. `where` names the
// file in errors. Throws DataLossError if the bytes are not HDF5, or are truncated or damaged, and if datasets are not
// numbered from 0. Throws UnimplementedError for elements that are not numbers.
COHORT_EXPORT std::vector<WeightGroup> DecodeWeights(std::string_view bytes, const std::string& where);

}  // namespace cohort::keras
