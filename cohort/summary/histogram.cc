#include "cohort/summary/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

std::vector<double> MakeLimits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(kLargest);
  std::vector<double> limits;
  for (auto it = positive.rbegin(); it != positive.rend(); ++it) limits.push_back(-*it);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

template <typename T>
void AddValues(const Tensor& values, Histogram* histogram) {
  for (const T& value : values.values<T>()) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      histogram->Add(static_cast<float>(value));
    } else {
      histogram->Add(static_cast<double>(value));
    }
  }
}

}  // namespace

std::span<const double> Histogram::BucketLimits() {
  static const std::vector<double> limits = MakeLimits();
  return limits;
}

Histogram::Histogram() : min_(kLargest), max_(-kLargest), counts_(BucketLimits().size()) {}

void Histogram::Add(double value) {
  if (!std::isfinite(value))
    throw InvalidArgumentError(StrCat("[summary] a histogram takes finite values; got ", value));
  const std::span<const double> limits = BucketLimits();
  const auto bucket = static_cast<size_t>(std::upper_bound(limits.begin(), limits.end(), value) - limits.begin());
  counts_[std::min(bucket, counts_.size() - 1)] += 1;  // the largest double has no limit above it
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  num_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

void Histogram::Add(const Tensor& values) {
  switch (values.dtype()) {
    case DType::kFloat32: return AddValues<float>(values, this);
    case DType::kFloat64: return AddValues<double>(values, this);
    case DType::kBfloat16: return AddValues<bfloat16>(values, this);
    case DType::kInt32: return AddValues<int32_t>(values, this);
    case DType::kInt64: return AddValues<int64_t>(values, this);
    case DType::kUint8: return AddValues<uint8_t>(values, this);
    case DType::kBool: return AddValues<bool>(values, this);
    default: throw InvalidArgumentError(StrCat("[summary] a histogram takes numbers; got ", values.ToString(1)));
  }
}

HistogramData Histogram::Encode() const {
  HistogramData data{min_, max_, num_, sum_, sum_squares_, {}, {}};
  const std::span<const double> limits = BucketLimits();
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0) continue;
    data.limits.push_back(limits[i]);
    data.counts.push_back(counts_[i]);
  }
  return data;
}

}  // namespace cohort
