// Weights as Keras 3 files them (`model.weights.h5`): HDF5, one group `<path>/vars` with datasets "0", "1", ... for
// each object that holds variables. See docs/formats.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::keras {

struct COHORT_EXPORT WeightGroup {
  std::string path;            // "layers/dense_1", "optimizer"; "" is the model itself
  std::string name;            // the object's name, for people; not read back
  std::vector<Tensor> values;  // float32, float64, int32, int64, uint8, bool or bfloat16; may be empty
};

// The bytes of a file with these groups. Throws InvalidArgumentError for a path that occurs twice and for a tensor that
// cannot be filed. Thread-safe, one call at a time.
COHORT_EXPORT std::string EncodeWeights(const std::vector<WeightGroup>& groups);

// All groups, by path. float16 comes as float32, and other integers as int64. `where` names the file in errors.
// Throws DataLossError for bytes that are no HDF5 file (or a truncated or damaged one) and for datasets that are not
// numbered from 0, UnimplementedError for elements that are no numbers.
COHORT_EXPORT std::vector<WeightGroup> DecodeWeights(std::string_view bytes, const std::string& where);

}  // namespace cohort::keras
