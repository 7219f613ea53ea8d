#include "cohort/summary/summary.h"

#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/event.pb.h"

namespace cohort {

std::string ScalarSummary(std::string_view tag, float value) {
  proto::Summary summary;
  proto::Summary::Value* one = summary.add_value();
  one->set_tag(std::string(tag));
  one->set_simple_value(value);
  return summary.SerializeAsString();
}

std::string HistogramSummary(std::string_view tag, const HistogramData& histogram) {
  proto::Summary summary;
  proto::Summary::Value* one = summary.add_value();
  one->set_tag(std::string(tag));
  proto::HistogramProto* histo = one->mutable_histo();
  histo->set_min(histogram.min);
  histo->set_max(histogram.max);
  histo->set_num(histogram.num);
  histo->set_sum(histogram.sum);
  histo->set_sum_squares(histogram.sum_squares);
  histo->mutable_bucket_limit()->Add(histogram.limits.begin(), histogram.limits.end());
  histo->mutable_bucket()->Add(histogram.counts.begin(), histogram.counts.end());
  return summary.SerializeAsString();
}

std::string HistogramSummary(std::string_view tag, const Tensor& values) {
  Histogram histogram;
  try {
    histogram.Add(values);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(StrCat(error.what(), " in summary histogram for: ", tag));
  }
  return HistogramSummary(tag, histogram.Encode());
}

std::string MergeSummaries(const std::vector<std::string>& summaries) {
  proto::Summary merged;
  std::set<std::string> tags;
  for (const std::string& bytes : summaries) {
    proto::Summary one;
    if (!one.ParseFromString(bytes)) {
      throw InvalidArgumentError(StrCat("[summary] expected a serialized Summary; got ", bytes.size(), " other bytes"));
    }
    for (proto::Summary::Value& value : *one.mutable_value()) {
      if (!tags.insert(value.tag()).second) {
        throw InvalidArgumentError(
            StrCat("[summary] the tag \"", value.tag(), "\" occurs twice among merged summaries"));
      }
      merged.add_value()->Swap(&value);
    }
  }
  return merged.SerializeAsString();
}

}  // namespace cohort
