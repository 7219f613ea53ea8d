#include "cohort/distribute/partitioners.h"

#include <algorithm>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::distribute {
namespace {

void CheckPositive(std::string_view function, std::string_view argument, int64_t value) {
  if (value >= 1) return;
  throw InvalidArgumentError(StrCat("[distribute] ", function, " expected ", argument, " of at least 1; got ", value));
}

void CheckAxis(std::string_view function, int axis) {
  if (axis >= 0) return;
  throw InvalidArgumentError(StrCat("[distribute] ", function, " expected an axis of at least 0; got ", axis));
}

int64_t Ceil(int64_t value, int64_t divisor) { return value / divisor + (value % divisor == 0 ? 0 : 1); }

// Returns the size of the axis that is cut. Throws if `shape` does not have it.
int64_t SizeOfAxis(std::string_view function, const Shape& shape, int axis) {
  if (shape.IsFullyDefined() && axis < shape.rank()) return shape.dim(axis);
  throw InvalidArgumentError(
      StrCat("[distribute] ", function, " expected a known shape with axis ", axis, "; got ", shape));
}

std::vector<int64_t> Along(const Shape& shape, int axis, int64_t parts) {
  std::vector<int64_t> all(static_cast<size_t>(shape.rank()), 1);
  all[static_cast<size_t>(axis)] = std::max<int64_t>(1, parts);
  return all;
}

int64_t ElementBytes(DType dtype, int64_t bytes_per_string) {
  return dtype == DType::kString ? bytes_per_string : static_cast<int64_t>(DTypeSize(dtype));
}

Partitioner Fixed(std::string_view function, int64_t num_shards, int axis) {
  CheckPositive(function, "num_shards", num_shards);
  CheckAxis(function, axis);
  return [=](const Shape& shape, DType /*dtype*/) {
    return Along(shape, axis, std::min(num_shards, SizeOfAxis(function, shape, axis)));
  };
}

Partitioner MinSize(std::string_view function, int64_t min_bytes, int64_t max_parts, int64_t bytes_per_string,
                    int axis) {
  CheckPositive(function, "a minimum of bytes", min_bytes);
  CheckPositive(function, "a maximum of parts", max_parts);
  CheckPositive(function, "bytes for each string", bytes_per_string);
  CheckAxis(function, axis);
  return [=](const Shape& shape, DType dtype) {
    const int64_t size = SizeOfAxis(function, shape, axis);
    const int64_t bytes = shape.num_elements() * ElementBytes(dtype, bytes_per_string);
    return Along(shape, axis, std::min({size, max_parts, Ceil(bytes, min_bytes)}));
  };
}

Partitioner MaxSize(std::string_view function, int64_t max_bytes, std::optional<int64_t> max_parts,
                    int64_t bytes_per_string, int axis) {
  CheckPositive(function, "a maximum of bytes", max_bytes);
  if (max_parts) CheckPositive(function, "a maximum of parts", *max_parts);
  CheckPositive(function, "bytes for each string", bytes_per_string);
  CheckAxis(function, axis);
  return [=](const Shape& shape, DType dtype) {
    const int64_t size = SizeOfAxis(function, shape, axis);
    if (size == 0) return Along(shape, axis, 1);
    const int64_t slice = shape.num_elements() / size * ElementBytes(dtype, bytes_per_string);
    const int64_t slices = slice == 0 ? size : std::max<int64_t>(1, max_bytes / slice);
    const int64_t parts = Ceil(size, slices);
    return Along(shape, axis, max_parts ? std::min(*max_parts, parts) : parts);
  };
}

}  // namespace

Partitioner FixedShardsPartitioner(int64_t num_shards) { return Fixed("FixedShardsPartitioner", num_shards, 0); }

Partitioner MinSizePartitioner(const MinSizeOptions& options) {
  return MinSize("MinSizePartitioner", options.min_shard_bytes, options.max_shards, options.bytes_per_string, 0);
}

Partitioner MaxSizePartitioner(int64_t max_shard_bytes, const MaxSizeOptions& options) {
  return MaxSize("MaxSizePartitioner", max_shard_bytes, options.max_shards, options.bytes_per_string, 0);
}

Partitioner FixedSizePartitioner(int64_t num_shards, int axis) {
  return Fixed("FixedSizePartitioner", num_shards, axis);
}

Partitioner MinMaxVariablePartitioner(int64_t max_partitions, int axis, int64_t min_slice_size,
                                      int64_t bytes_per_string_element) {
  return MinSize("MinMaxVariablePartitioner", min_slice_size, max_partitions, bytes_per_string_element, axis);
}

Partitioner VariableAxisSizePartitioner(int64_t max_shard_bytes, int axis, int64_t bytes_per_string_element,
                                        std::optional<int64_t> max_shards) {
  return MaxSize("VariableAxisSizePartitioner", max_shard_bytes, max_shards, bytes_per_string_element, axis);
}

std::vector<int64_t> PartSizes(int64_t size, int64_t parts) {
  std::vector<int64_t> sizes(static_cast<size_t>(parts), size / parts);
  for (int64_t i = 0; i < size % parts; ++i) ++sizes[static_cast<size_t>(i)];
  return sizes;
}

}  // namespace cohort::distribute
