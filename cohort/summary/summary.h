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
// Returns the first `max_images` images of `images` (uint8, float32 or float64 [batch, rows, columns, channels]) as PNG
// files; ops::ImageSummary says how. A pixel with a number that is not finite becomes the first numbers of `bad_colour`
// (uint8, one number for each channel or more). Throws InvalidArgumentError for other images and colours.
COHORT_EXPORT std::string ImageSummary(std::string_view tag, const Tensor& images, int64_t max_images = 3,
                                       const std::vector<uint8_t>& bad_colour = {255, 0, 0, 255});
// Joins the values of all summaries, in order. Throws InvalidArgumentError if bytes are not a Summary or if a tag
// occurs twice.
COHORT_EXPORT std::string MergeSummaries(const std::vector<std::string>& summaries);

}  // namespace cohort
