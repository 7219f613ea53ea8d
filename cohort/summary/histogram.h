// Histogram with TensorFlow's v1 bucket limits: 1e-12 * 1.1^k below 1e20 and the largest double, their
// negatives, and 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort {

// As it is stored: counts[i] values lie in [limits[i-1], limits[i]).
struct COHORT_EXPORT HistogramData {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;
  std::vector<double> counts;
};

// Not thread-safe.
class COHORT_EXPORT Histogram {
 public:
  Histogram();
  static std::span<const double> BucketLimits();

  // Throws InvalidArgumentError for NaN and infinity.
  void Add(double value);
  // Every element of a float, integer or bool tensor. Throws InvalidArgumentError for other dtypes, NaN and
  // infinity.
  void Add(const Tensor& values);
  // A run of empty buckets is given as one, with the run's last limit; without values: one bucket.
  HistogramData Encode() const;

 private:
  double min_, max_;
  double num_ = 0, sum_ = 0, sum_squares_ = 0;
  std::vector<double> counts_;
};

}  // namespace cohort
