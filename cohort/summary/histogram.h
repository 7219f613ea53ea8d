// Histogram with the bucket limits of TensorFlow's v1 summaries: 1e-12 * 1.1^k below 1e20, the largest double, the
// negatives of these, and 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort {

// A histogram in the form of a summary. counts[i] is the number of values in [limits[i-1], limits[i]). A value type.
struct COHORT_EXPORT HistogramData {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;
  std::vector<double> counts;
};

// Counts values in buckets. The caller owns it. Not thread-safe.
class COHORT_EXPORT Histogram {
 public:
  Histogram();
  // Returns the upper limits of all buckets, in ascending order.
  static std::span<const double> BucketLimits();

  // Throws InvalidArgumentError for NaN or infinity.
  void Add(double value);
  // Adds every element of a float, integer or bool tensor. Throws InvalidArgumentError for other dtypes, and for an
  // element that is NaN or infinity. The elements before it remain added.
  void Add(const Tensor& values);
  // Returns the histogram in the form of a summary. Empty buckets that follow each other are joined to one, which has
  // the last of their limits. If no value was added, there is one empty bucket.
  HistogramData Encode() const;

 private:
  double min_, max_;
  double num_ = 0, sum_ = 0, sum_squares_ = 0;
  std::vector<double> counts_;
};

}  // namespace cohort
