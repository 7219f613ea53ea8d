// Turns datasets into bytes, so that another process can run them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// A dataset as bytes, with its tensors beside the bytes.
struct COHORT_EXPORT SerializedDataset {
  std::string description;
  // The tensors that the description refers to, by a hash of their contents. A tensor that the receiver already has
  // need not be sent again. They share the dataset's bytes.
  std::map<uint64_t, Tensor> tensors;
};

// Throws FailedPreconditionError that names the stage if a stage calls a function of this process. Throws
// InvalidArgumentError if the tensors have more than `max_tensor_bytes` together. A tensor that several stages hold
// counts once.
COHORT_EXPORT SerializedDataset Serialize(const Dataset& dataset,
                                          int64_t max_tensor_bytes = std::numeric_limits<int64_t>::max());

// Throws if a dataset may not use the file `path`. An empty function allows every path.
using FileCheck = std::function<void(const std::string& path)>;

// Returns the same pipeline. `check` is called for each file before the dataset uses it, here or later on any thread. A
// shuffle without a seed keeps the seed that it has drawn. `lookup` returns the tensor with a hash, and may throw.
// Throws DataLossError or InvalidArgumentError if the bytes do not describe a dataset, or if a tensor does not have its
// hash.
COHORT_EXPORT Dataset Deserialize(std::string_view description, const std::function<Tensor(uint64_t hash)>& lookup,
                                  FileCheck check = nullptr);
COHORT_EXPORT Dataset Deserialize(const SerializedDataset& serialized, FileCheck check = nullptr);

}  // namespace cohort::data
