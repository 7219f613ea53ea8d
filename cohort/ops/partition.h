// Ops that sort rows into groups. Sharded embeddings and sparse gradients use them.
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns out[s] = sum of the rows of `data` whose segment id is s. The shape is [num_segments] +
// data[segment_ids.rank:]. Ids are int32 or int64. Negative ids are dropped. An id >= num_segments fails the step with
// InvalidArgumentError.
COHORT_EXPORT Output UnsortedSegmentSum(Output data, Output segment_ids, Output num_segments,
                                        const NodeName& name = "");
// Return the sums or the means of the rows of `data` that have the same segment id: [last id + 1] + data[1:].
// `segment_ids` is int32 or int64 [rows of data], and ascending from 0 on; a segment without rows is zero. SegmentMean
// takes floating dtypes. Ids that are negative or that fall fail the step with InvalidArgumentError.
COHORT_EXPORT Output SegmentSum(Output data, Output segment_ids, const NodeName& name = "");
COHORT_EXPORT Output SegmentMean(Output data, Output segment_ids, const NodeName& name = "");
// Returns `num_partitions` tensors. Tensor p has the rows of `data` whose number in `partitions` is p, in order.
// `partitions` is int32 and has the shape of data's first dimensions.
COHORT_EXPORT std::vector<Output> DynamicPartition(Output data, Output partitions, int num_partitions,
                                                   const NodeName& name = "");
// Does the reverse: returns merged with merged[indices[m][i]] = data[m][i]. If several rows have one place, the last
// one is used. Places without a row are zero.
COHORT_EXPORT Output DynamicStitch(const std::vector<Output>& indices, const std::vector<Output>& data,
                                   const NodeName& name = "");

}  // namespace cohort::ops
