// Summaries: values for TensorBoard as serialized Summary messages (string scalars). An EventWriter or a session's
// hooks write them. ScalarSummary, HistogramSummary and ImageSummary add their results to the graph's collection
// "summaries".
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

inline constexpr char kSummariesCollection[] = "summaries";

// Returns a summary of `value`, which is a scalar number. The tag is `tag` under the current name scope.
COHORT_EXPORT Output ScalarSummary(const std::string& tag, Output value, const NodeName& name = "");
// Returns a histogram of `values`, which are numbers of any shape. NaN or infinity fails the step with
// InvalidArgumentError, which names the tag.
COHORT_EXPORT Output HistogramSummary(const std::string& tag, Output values, const NodeName& name = "");
// Returns a summary with the first `max_images` images of `images` [batch, rows, columns, channels] as PNG files, with
// 1 to 4 channels. uint8 is written as it is. The numbers of a float32 or float64 image are scaled so that the largest
// one becomes 255. If there are negative ones, 0 becomes 128, and the largest distance from 0 becomes 127. Pixels with
// NaN or infinity are red. The tags are "TAG/image" if max_images is 1, and "TAG/image/0", "TAG/image/1", ...
// otherwise.
COHORT_EXPORT Output ImageSummary(const std::string& tag, Output images, int max_images = 3, const NodeName& name = "");
// Returns one summary with the values of all. A tag that occurs twice fails the step. The result is not added to the
// collection.
COHORT_EXPORT Output MergeSummary(const std::vector<Output>& summaries, const NodeName& name = "MergeSummary");
// Returns MergeSummary of the collection as it is now, or an Output that is not valid() if it is empty.
COHORT_EXPORT Output MergeAllSummaries(Graph& graph, const std::string& collection = kSummariesCollection,
                                       const NodeName& name = "MergeSummary");

}  // namespace cohort::ops
