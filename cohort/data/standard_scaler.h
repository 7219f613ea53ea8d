// StandardScaler: (x - mean) / standard deviation for each feature, like the class of this name in scikit-learn.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// Learns mean and standard deviation of rows, then scales other rows with them. All axes after the first are features.
// Inputs may be float32, float64, int32, int64, uint8 or bfloat16; sums are kept in double (Welford's method). A value
// type: the program owns it, and copies are independent. Const members are thread-safe. While Fit or PartialFit runs,
// no other call may run.
class COHORT_EXPORT StandardScaler {
 public:
  // Learns from `rows`, [n, features...], and forgets earlier rows. Throws InvalidArgumentError if there are no rows or
  // if the dtype is not a number.
  void Fit(const Tensor& rows);
  // Learns from the component number `component` of each element, and forgets earlier rows. The component of one
  // element is one row. Throws InvalidArgumentError if there are no elements, no such component, or rows of different
  // shapes, and the errors of Iterator::Next.
  void Fit(const Dataset& dataset, size_t component = 0);
  // Learns from more rows, [n, features...], in addition to earlier rows. Throws as Fit does, and InvalidArgumentError
  // if the shape of the features is not that of the earlier rows.
  void PartialFit(const Tensor& rows);

  // Both functions take [n, features...], or one row [features...], and return float32. Transform scales;
  // InverseTransform undoes it. They throw FailedPreconditionError before the first fit, and InvalidArgumentError if
  // the shape of the features is not feature_shape() or the dtype is not a number.
  Tensor Transform(const Tensor& values) const;
  // Calls Fit(rows) and returns Transform(rows). Throws what they throw.
  Tensor FitTransform(const Tensor& rows) {
    Fit(rows);
    return Transform(rows);
  }
  Tensor InverseTransform(const Tensor& values) const;

  int64_t num_rows() const { return num_rows_; }
  const Shape& feature_shape() const { return feature_shape_; }
  // Returns the mean of each feature, in the row-major order of feature_shape().
  const std::vector<double>& mean() const { return mean_; }
  // Returns the standard deviation of each feature. It is sqrt(S / num_rows()), with the sum S of the squared distances
  // from the mean. Returns 1 for a feature whose standard deviation is 0.
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
  std::vector<double> squares_;  // for each feature, the sum of squared distances from the mean
};

}  // namespace cohort::data
