// Rows sorted into groups, by number: what sharded embeddings and sparse gradients are made of.
#pragma once

#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// out[s] = sum of the rows of `data` whose segment id is s: shape [num_segments] + data[segment_ids.rank:].
// Negative ids are dropped; one >= num_segments is an InvalidArgumentError.
Output UnsortedSegmentSum(Output data, Output segment_ids, Output num_segments, const NodeName& name = "");
// Rows of `data` by the number in `partitions` (int32, the shape of data's first dimensions), in order.
std::vector<Output> DynamicPartition(Output data, Output partitions, int num_partitions, const NodeName& name = "");
// The reverse: merged[indices[m][i]] = data[m][i]; of several for one place the last wins, places without one
// are zero.
Output DynamicStitch(const std::vector<Output>& indices, const std::vector<Output>& data, const NodeName& name = "");

}  // namespace cohort::ops
