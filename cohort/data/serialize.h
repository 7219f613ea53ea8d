// Datasets as bytes, to run them in another process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

struct COHORT_EXPORT SerializedDataset {
  std::string description;
  // The tensors that the description refers to, by a hash of their contents: what a receiver has already need not be
  // sent again. They share the dataset's bytes.
  std::map<uint64_t, Tensor> tensors;
};

// Throws FailedPreconditionError that names the stage where one calls a function of this process.
COHORT_EXPORT SerializedDataset Serialize(const Dataset& dataset);

// The same pipeline; a shuffle without a seed keeps the one that it has drawn. `lookup` returns the tensor of a hash
// and may throw. Throws DataLossError or InvalidArgumentError for bytes that describe no dataset or a tensor that does
// not have its hash.
COHORT_EXPORT Dataset Deserialize(std::string_view description, const std::function<Tensor(uint64_t hash)>& lookup);
COHORT_EXPORT Dataset Deserialize(const SerializedDataset& serialized);

}  // namespace cohort::data
