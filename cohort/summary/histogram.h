// Histogram with the bucket limits of TensorFlow's v1 summaries: 1e-12 * 1.1^k below 1e20, the largest double, the
// negatives of these, and 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort {

// A histogram in the form of a summary. counts[i] is the number of values in [limits[i-1], limits[i]).
struct COHORT_EXPORT HistogramData {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;
  std::vector<double> counts;
};

// Counts values in buckets. Not thread-safe.
class COHORT_EXPORT Histogram {
 public:
  Histogram();
  static std::span<const double> BucketLimits();

  // Throws InvalidArgumentError for NaN or infinity.
  void Add(double value);
  // Adds every element of a float, integer or bool tensor. Throws InvalidArgumentError for other dtypes, NaN or
  // infinity.
  void Add(const Tensor& values);
  // Returns the stored form. Consecutive empty buckets are joined to one, with the last of their limits. Without values
  // there is one bucket.
  HistogramData Encode() const;

 private:
  double min_, max_;
  double num_ = 0, sum_ = 0, sum_squares_ = 0;
  std::vector<double> counts_;
};

}  // namespace cohort
