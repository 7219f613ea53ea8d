// Partitioners: pure functions that say into how many parts a variable is cut, with TensorFlow's arithmetic. Give one
// to ParameterServerStrategy, or to ops::GetVariable (ops/partitioned_variables.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/dtype.h"
#include "cohort/core/export.h"
#include "cohort/core/shape.h"
#include "cohort/ops/partitioned_variables.h"

namespace cohort::distribute {

// The partitioners of this header cut one axis. They throw InvalidArgumentError if the shape is not known or has no
// such axis. Thread-safe.
using ops::Partitioner;

// Cuts axis 0 into `num_shards` parts, but into no more parts than there are rows. Throws InvalidArgumentError if
// num_shards < 1.
COHORT_EXPORT Partitioner FixedShardsPartitioner(int64_t num_shards);

struct COHORT_EXPORT MinSizeOptions {
  int64_t min_shard_bytes = 256 << 10;
  int64_t max_shards = 1;
  int64_t bytes_per_string = 16;  // what an element counts if the dtype is string
};
// Cuts axis 0 into as many parts as there are multiples of min_shard_bytes in the variable, rounded up, but into no
// more than max_shards, and no more than there are rows. So a part may have a little less than min_shard_bytes. Throws
// InvalidArgumentError if a number is less than 1.
COHORT_EXPORT Partitioner MinSizePartitioner(const MinSizeOptions& options = {});

struct COHORT_EXPORT MaxSizeOptions {
  std::optional<int64_t> max_shards = std::nullopt;  // nullopt: no limit
  int64_t bytes_per_string = 16;
};
// Cuts axis 0 into parts of at most max_shard_bytes each. A part has at least one row, and there are at most max_shards
// parts, also if parts are larger then. Throws InvalidArgumentError if a number is less than 1.
COHORT_EXPORT Partitioner MaxSizePartitioner(int64_t max_shard_bytes, const MaxSizeOptions& options = {});

// The same three as TensorFlow 1's functions, in the same order: fixed_size_partitioner, min_max_variable_partitioner,
// variable_axis_size_partitioner. They may cut another axis than 0; ParameterServerStrategy refuses such a cut.
COHORT_EXPORT Partitioner FixedSizePartitioner(int64_t num_shards, int axis = 0);
COHORT_EXPORT Partitioner MinMaxVariablePartitioner(int64_t max_partitions = 1, int axis = 0,
                                                    int64_t min_slice_size = 256 << 10,
                                                    int64_t bytes_per_string_element = 16);
COHORT_EXPORT Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis = 0,
                                                      int64_t bytes_per_string_element = 16,
                                                      std::optional<int64_t> max_shards = std::nullopt);

// Returns the sizes of `parts` parts of an axis of `size`: as equal as possible, larger ones first (13 in 5 parts: 3,
// 3, 3, 2, 2). Requires: parts >= 1.
COHORT_EXPORT std::vector<int64_t> PartSizes(int64_t size, int64_t parts);

}  // namespace cohort::distribute
