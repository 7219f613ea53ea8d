// Summaries: values for TensorBoard as serialized Summary messages (string scalars). An EventWriter or a session's
// hooks write them. ScalarSummary and HistogramSummary add their results to the graph's collection "summaries".
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

inline constexpr char kSummariesCollection[] = "summaries";

// Returns a summary of `value`, which is a scalar number. The tag is `tag` under the current name scope.
Output ScalarSummary(const std::string& tag, Output value);
// Returns a histogram of `values`, which are numbers of any shape. NaN or infinity fails the step with
// InvalidArgumentError, which names the tag.
Output HistogramSummary(const std::string& tag, Output values);
// Returns one summary with the values of all. A tag that occurs twice fails the step. The result is not added to the
// collection.
Output MergeSummary(const std::vector<Output>& summaries, const std::string& name = "MergeSummary");
// Returns MergeSummary of the collection as it is now, or an Output that is not valid() if it is empty.
Output MergeAllSummaries(Graph& graph, const std::string& collection = kSummariesCollection);

}  // namespace cohort::ops
