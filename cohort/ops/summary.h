// Summaries: values for TensorBoard as serialized Summary messages (string scalars), which an EventWriter or a
// session's hooks write. The functions put what they add into the graph's collection "summaries".
#pragma once

#include <string>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::ops {

inline constexpr char kSummariesCollection[] = "summaries";

// `value`: a scalar number. The tag is `tag` under the current name scope. The node is called like the tag unless
// `name` says otherwise.
Output ScalarSummary(const std::string& tag, Output value, const NodeName& name = "");
// `values`: numbers of any shape; NaN or infinity fails the step with InvalidArgumentError that names the tag.
Output HistogramSummary(const std::string& tag, Output values, const NodeName& name = "");
// One summary with the values of all; a tag that occurs twice fails the step. Not put into the collection.
Output MergeSummary(const std::vector<Output>& summaries, const NodeName& name = "MergeSummary");
// MergeSummary of the collection as it is now; !valid() where it is empty.
Output MergeAllSummaries(Graph& graph, const std::string& collection = kSummariesCollection,
                         const NodeName& name = "MergeSummary");

}  // namespace cohort::ops
