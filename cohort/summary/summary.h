// Makes serialized Summary messages. Summary ops return them as string scalars, and event files contain them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/summary/histogram.h"

namespace cohort {

// Returns a summary with a tag and a simple_value. TensorBoard shows it among its scalars.
COHORT_EXPORT std::string ScalarSummary(std::string_view tag, float value);
COHORT_EXPORT std::string HistogramSummary(std::string_view tag, const HistogramData& histogram);
// Throws InvalidArgumentError that names the tag if `values` has NaN or infinity or is not numeric.
COHORT_EXPORT std::string HistogramSummary(std::string_view tag, const Tensor& values);
// Joins the values of all summaries, in order. Throws InvalidArgumentError if bytes are not a Summary or if a tag
// occurs twice.
COHORT_EXPORT std::string MergeSummaries(const std::vector<std::string>& summaries);

}  // namespace cohort
