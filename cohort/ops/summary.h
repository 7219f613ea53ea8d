// Summaries: values for TensorBoard as serialized Summary messages (string scalars), which an EventWriter or a
// session's hooks write. The functions put what they add into the graph's collection "summaries".
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

inline constexpr char kSummariesCollection[] = "summaries";

// `value`: a scalar number. The tag is `tag` under the current name scope.
COHORT_EXPORT Output ScalarSummary(const std::string& tag, Output value);
// `values`: numbers of any shape; NaN or infinity fails the step with InvalidArgumentError that names the tag.
COHORT_EXPORT Output HistogramSummary(const std::string& tag, Output values);
// One summary with the values of all; a tag that occurs twice fails the step. Not put into the collection.
COHORT_EXPORT Output MergeSummary(const std::vector<Output>& summaries, const std::string& name = "MergeSummary");
// MergeSummary of the collection as it is now; !valid() where it is empty.
COHORT_EXPORT Output MergeAllSummaries(Graph& graph, const std::string& collection = kSummariesCollection);

}  // namespace cohort::ops
