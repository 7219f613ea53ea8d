// StandardScaler: (x - mean) / standard deviation for each feature, as scikit-learn's class of this name has it.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// A feature is one position of what comes after the first axis. Inputs: float32, float64, int32, int64, uint8 or
// bfloat16; sums are kept in double (Welford 1962). Not thread-safe while it is fitted.
class COHORT_EXPORT StandardScaler {
 public:
  // Mean and deviation of the rows of `rows`, [n, features...]; what was fitted before is dropped. Throws
  // InvalidArgumentError for no rows or a dtype that is no number.
  void Fit(const Tensor& rows);
  // Of one component of all elements, each of which is a row.
  void Fit(const Dataset& dataset, size_t component = 0);
  // More rows, [n, features...], to those before.
  void PartialFit(const Tensor& rows);

  // [n, features...] or one row [features...], as float32. Throws FailedPreconditionError before the first fit,
  // InvalidArgumentError for other features.
  Tensor Transform(const Tensor& values) const;
  Tensor InverseTransform(const Tensor& values) const;

  int64_t num_rows() const { return num_rows_; }
  const Shape& feature_shape() const { return feature_shape_; }
  // In the row-major order of feature_shape().
  const std::vector<double>& mean() const { return mean_; }
  // The standard deviation of the population (divided by n); 1 where it is 0.
  std::vector<double> scale() const;

 private:
  template <typename T>
  void AddRows(const T* values, int64_t rows);
  template <typename Formula>
  Tensor Apply(const Tensor& values, const Formula& formula) const;
  void CheckFitted(const Tensor& values) const;

  int64_t num_rows_ = 0;
  Shape feature_shape_;
  std::vector<double> mean_;
  std::vector<double> squares_;  // sums of squared distances from the mean
};

}  // namespace cohort::data
