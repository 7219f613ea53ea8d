// ModelData: what models are trained on and evaluated with - tensors of all examples, or a dataset of batches.
#pragma once

#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::keras {

class COHORT_EXPORT ModelData {
 public:
  ModelData() = default;
  // Batches: elements whose components are the inputs, the targets and, optionally, weights [batch] of the examples.
  ModelData(data::Dataset dataset) : dataset_(std::move(dataset)) {}
  // Examples along axis 0, [n, ...]. Shares the tensors' bytes. `sample_weight`: [n], any number dtype.
  ModelData(Tensor x, Tensor y, Tensor sample_weight = {})
      : ModelData(std::vector<Tensor>{std::move(x)}, std::vector<Tensor>{std::move(y)}, std::move(sample_weight)) {}
  // Of a model with several inputs or outputs.
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
