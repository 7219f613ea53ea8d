// Serialized Summary messages, as summary ops give them (a scalar string each) and event files hold them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/summary/histogram.h"

namespace cohort {

// tag + simple_value, which TensorBoard shows among its scalars.
COHORT_EXPORT std::string ScalarSummary(std::string_view tag, float value);
COHORT_EXPORT std::string HistogramSummary(std::string_view tag, const HistogramData& histogram);
// Throws InvalidArgumentError that names the tag for NaN, infinity and tensors without numbers.
COHORT_EXPORT std::string HistogramSummary(std::string_view tag, const Tensor& values);
// The values of all, in order. Throws InvalidArgumentError for bytes that are no Summary and for a tag that
// occurs twice.
COHORT_EXPORT std::string MergeSummaries(const std::vector<std::string>& summaries);

}  // namespace cohort
