// Rows sorted into groups, by number: what sharded embeddings and sparse gradients are made of.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// out[s] = sum of the rows of `data` whose segment id is s: shape [num_segments] + data[segment_ids.rank:].
// Negative ids are dropped; one >= num_segments is an InvalidArgumentError.
COHORT_EXPORT Output UnsortedSegmentSum(Output data, Output segment_ids, Output num_segments);
// Rows of `data` by the number in `partitions` (int32, the shape of data's first dimensions), in order.
COHORT_EXPORT std::vector<Output> DynamicPartition(Output data, Output partitions, int num_partitions);
// The reverse: merged[indices[m][i]] = data[m][i]; of several for one place the last wins, places without one
// are zero.
COHORT_EXPORT Output DynamicStitch(const std::vector<Output>& indices, const std::vector<Output>& data);

}  // namespace cohort::ops
