// ModelData: the data for training, evaluation or prediction: tensors of all examples, or a dataset of batches.
#pragma once

#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::keras {

// Cheap to copy: copies share the tensors' bytes. Immutable.
class COHORT_EXPORT ModelData {
 public:
  ModelData() = default;
  // A dataset of batches. The components of its elements are the inputs, the targets and, optionally, weights [batch]
  // of the examples.
  ModelData(data::Dataset dataset) : dataset_(std::move(dataset)) {}
  // Tensors [n, ...]; axis 0 counts the examples. Shares the tensors' bytes, so do not change them while the data are
  // used. `sample_weight` is [n], of any numeric dtype.
  ModelData(Tensor x, Tensor y, Tensor sample_weight = {})
      : ModelData(std::vector<Tensor>{std::move(x)}, std::vector<Tensor>{std::move(y)}, std::move(sample_weight)) {}
  // As above, for a model with several inputs or outputs.
  ModelData(std::vector<Tensor> x, std::vector<Tensor> y, Tensor sample_weight = {})
      : x_(std::move(x)), y_(std::move(y)), sample_weight_(std::move(sample_weight)) {}

  bool empty() const { return !dataset_ && x_.empty(); }
  const std::optional<data::Dataset>& dataset() const { return dataset_; }
  const std::vector<Tensor>& x() const { return x_; }
  const std::vector<Tensor>& y() const { return y_; }
  const Tensor& sample_weight() const { return sample_weight_; }

 private:
  std::optional<data::Dataset> dataset_;
  std::vector<Tensor> x_;
  std::vector<Tensor> y_;
  Tensor sample_weight_;
};

}  // namespace cohort::keras
