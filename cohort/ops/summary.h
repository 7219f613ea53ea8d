// Summaries: values for TensorBoard as serialized Summary messages (string scalars). An EventWriter or a session's
// hooks write them. ScalarSummary and HistogramSummary add their results to the graph's collection "summaries".
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

inline constexpr char kSummariesCollection[] = "summaries";

// Returns a summary of `value`, which is a scalar number. The tag is `tag` under the current name scope.
COHORT_EXPORT Output ScalarSummary(const std::string& tag, Output value);
// Returns a histogram of `values`, which are numbers of any shape. NaN or infinity fails the step with
// InvalidArgumentError, which names the tag.
COHORT_EXPORT Output HistogramSummary(const std::string& tag, Output values);
// Returns one summary with the values of all. A tag that occurs twice fails the step. The result is not added to the
// collection.
COHORT_EXPORT Output MergeSummary(const std::vector<Output>& summaries, const std::string& name = "MergeSummary");
// Returns MergeSummary of the collection as it is now, or an Output that is not valid() if it is empty.
COHORT_EXPORT Output MergeAllSummaries(Graph& graph, const std::string& collection = kSummariesCollection);

}  // namespace cohort::ops
