// For tests: runs one layer as a model, with given weights.
#pragma once

#include <numeric>
#include <vector>

#include "cohort/keras/model.h"
#include "cohort/registration.h"

namespace cohort::keras {

// Returns a tensor with the values first, first + step, ...
inline Tensor Counting(const Shape& shape, float first = 0, float step = 1) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<float>()[i] = first + step * static_cast<float>(i);
  return tensor;
}

// Returns the layer's result in inference. `weights` are in the layer's order; if there are none, they are as
// initialized.
inline Tensor RunLayer(const LayerRef& layer, const Tensor& x, const std::vector<Tensor>& weights = {}) {
  const LayerTensor input = Input(x.shape().Sub(1, x.shape().rank()), {.dtype = x.dtype()});
  Model model({input}, {layer(input)});
  if (!weights.empty()) model.SetWeights(weights);
  return model.Predict(x);
}

// Returns the only output of a model with several inputs.
inline Tensor OutputOf(Model& model, const std::vector<Tensor>& x) { return model.PredictAll(ModelData(x, {})).at(0); }

// Returns the shape of the result for examples of `shape`.
inline Shape ShapeAfter(const LayerRef& layer, const Shape& shape) { return layer(Input(shape)).shape(); }

}  // namespace cohort::keras
