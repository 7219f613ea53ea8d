#include "cohort/estimator/layers.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/losses.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/pooling.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/variables.h"

namespace cohort::layers {
namespace {

// Returns the size of the last dimension. Throws unless it is known, and unless there are at least `rank` dimensions,
// or exactly so many if `exact` is true.
int64_t LastDim(const char* layer, Output inputs, int rank, bool exact) {
  const Shape& shape = inputs.shape();
  const bool fits = shape.has_rank() && (exact ? shape.rank() == rank : shape.rank() >= rank);
  if (fits && shape.dim(shape.rank() - 1) >= 0) return shape.dim(shape.rank() - 1);
  throw InvalidArgumentError(StrCat("[layers::", layer, "] expected inputs of ", exact ? "" : "at least ", rank,
                                    " dimensions, the last one known; got ", inputs.name(), " ", shape));
}

void CheckSize(const char* layer, const char* what, int64_t size) {
  if (size < 1) throw InvalidArgumentError(StrCat("[layers::", layer, "] expected at least 1 ", what, "; got ", size));
}

std::string PaddingOf(const char* layer, const std::string& padding) {
  if (padding == "valid") return "VALID";
  if (padding == "same") return "SAME";
  throw InvalidArgumentError(
      StrCat("[layers::", layer, "] expected a padding \"valid\" or \"same\"; got \"", padding, "\""));
}

ops::Variable Kernel(Graph& graph, const Shape& shape, DType dtype, const ops::Initializer& initializer, bool trainable,
                     const Regularizer& regularizer) {
  const ops::Variable kernel = ops::GetVariable(graph, "kernel", shape, dtype,
                                                initializer ? initializer : initializers::GlorotUniform(), trainable);
  if (regularizer) {
    const NameScope scope(graph, "kernel/Regularizer");
    graph.AddToCollection(losses::kRegularizationLosses, regularizer(kernel));
  }
  return kernel;
}

Output AddBias(Output value, int64_t channels, const ops::Initializer& initializer, bool trainable) {
  const ops::Variable bias = ops::GetVariable(value.graph(), "bias", Shape{channels}, value.dtype(),
                                              initializer ? initializer : initializers::Zeros(), trainable);
  return ops::BiasAdd(value, bias);
}

// Returns the product along the last axis: [..., units].
Output MultiplyLastAxis(Output inputs, Output kernel) {
  const Shape& shape = inputs.shape();
  if (shape.rank() == 2) return ops::MatMul(inputs, kernel);
  const Output product = ops::MatMul(ops::Reshape(inputs, {-1, kernel.shape().dim(0)}), kernel);
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.back() = kernel.shape().dim(1);
  if (std::count(dims.begin(), dims.end(), -1) <= 1) return ops::Reshape(product, dims);
  const Output outer = ops::Slice(ops::ShapeOf(inputs), {0}, {shape.rank() - 1});
  return ops::Reshape(product, ops::Concat({outer, ops::ShapeConst(inputs.graph(), Shape{dims.back()})}, 0));
}

ops::PoolOptions PoolOptionsOf(const char* layer, Pair size, Pair strides, const std::string& padding) {
  return {.size = {size.rows, size.columns},
          .strides = {strides.rows, strides.columns},
          .padding = PaddingOf(layer, padding)};
}

}  // namespace

Output Dense(Output inputs, int64_t units, const DenseOptions& options) {
  CheckSize("Dense", "unit", units);
  const int64_t n = LastDim("Dense", inputs, 2, false);
  const NameScope scope(inputs.graph(), options.name);
  const ops::Variable kernel = Kernel(inputs.graph(), Shape{n, units}, inputs.dtype(), options.kernel_initializer,
                                      options.trainable, options.kernel_regularizer);
  Output result = MultiplyLastAxis(inputs, kernel);
  if (options.use_bias) result = AddBias(result, units, options.bias_initializer, options.trainable);
  return options.activation(result);
}

Output Conv2D(Output inputs, int64_t filters, Pair kernel_size, const Conv2DOptions& options) {
  CheckSize("Conv2D", "filter", filters);
  const int64_t channels = LastDim("Conv2D", inputs, 4, true);
  const std::string padding = PaddingOf("Conv2D", options.padding);
  const NameScope scope(inputs.graph(), options.name);
  const ops::Variable kernel =
      Kernel(inputs.graph(), Shape{kernel_size.rows, kernel_size.columns, channels, filters}, inputs.dtype(),
             options.kernel_initializer, options.trainable, options.kernel_regularizer);
  Output result = ops::Conv2D(inputs, kernel,
                              {.strides = {options.strides.rows, options.strides.columns},
                               .dilations = {options.dilation_rate.rows, options.dilation_rate.columns},
                               .padding = padding});
  if (options.use_bias) result = AddBias(result, filters, options.bias_initializer, options.trainable);
  return options.activation(result);
}

Output MaxPooling2D(Output inputs, Pair pool_size, Pair strides, const Pooling2DOptions& options) {
  const NameScope scope(inputs.graph(), options.name.empty() ? "max_pooling2d" : options.name);
  return ops::MaxPool(inputs, PoolOptionsOf("MaxPooling2D", pool_size, strides, options.padding));
}

Output AveragePooling2D(Output inputs, Pair pool_size, Pair strides, const Pooling2DOptions& options) {
  const NameScope scope(inputs.graph(), options.name.empty() ? "average_pooling2d" : options.name);
  return ops::AvgPool(inputs, PoolOptionsOf("AveragePooling2D", pool_size, strides, options.padding));
}

Output Flatten(Output inputs, const std::string& name) {
  const Shape& shape = inputs.shape();
  if (!shape.has_rank() || shape.rank() < 1 || !shape.Sub(1, shape.rank()).IsFullyDefined()) {
    throw InvalidArgumentError(
        StrCat("[layers::Flatten] expected inputs whose dimensions after the first are known; got ", inputs.name(), " ",
               shape));
  }
  const NameScope scope(inputs.graph(), name);
  return ops::Reshape(inputs, {-1, shape.Sub(1, shape.rank()).num_elements()});
}

Output Dropout(Output inputs, const DropoutOptions& options) {
  const Training& training = options.training;
  if (training.is_constant() && !training.constant()) return inputs;
  const Output dropped = ops::Dropout(inputs, options.rate, options.seed, options.name);
  return training.is_constant() ? dropped : ops::SelectV2(training.output(), dropped, inputs);
}

namespace {

struct Normalization {
  Output y, mean, variance;  // mean and variance are those of the batch
};

// Images go through the fused op, whose variance is divided by the count - 1.
Normalization NormalizeImages(Output x, Output gamma, Output beta, Output mean, Output variance, float epsilon,
                              bool training) {
  const ops::BatchNorm fused =
      ops::FusedBatchNorm(x, gamma, beta, mean, variance, {.epsilon = epsilon, .is_training = training});
  return {fused.y, fused.mean, fused.variance};
}

Normalization NormalizeRows(Output x, Output gamma, Output beta, Output mean, Output variance, float epsilon,
                            bool training) {
  if (training) {
    std::vector<int64_t> axes;
    for (int i = 0; i + 1 < x.shape().rank(); ++i) axes.push_back(i);
    mean = ops::Mean(x, axes);
    variance = ops::Mean(ops::SquaredDifference(x, mean), axes);
  }
  const Output factor = ops::Rsqrt(variance + epsilon) * gamma;
  return {x * factor + (beta - mean * factor), mean, variance};
}

// Adds the update `average` -= (average - value) * (1 - momentum). It changes nothing if a fed `training` is false.
void UpdateMovingAverage(const ops::Variable& average, Output value, double momentum, const Training& training) {
  Graph& graph = value.graph();
  const NameScope scope(graph, "AssignMovingAvg");
  Output step = (average.value() - value) * static_cast<float>(1.0 - momentum);
  if (!training.is_constant()) step = ops::SelectV2(training.output(), step, 0);
  const ControlDependencies after(graph, {average.AssignSub(step)});
  AddUpdateOp(ops::Identity(step));
}

}  // namespace

Output BatchNormalization(Output inputs, const BatchNormalizationOptions& options) {
  const int64_t channels = LastDim("BatchNormalization", inputs, 2, false);
  Graph& graph = inputs.graph();
  const NameScope scope(graph, options.name);
  const auto variable = [&](const char* name, const ops::Initializer& initializer, bool one, bool trainable) {
    return ops::GetVariable(graph, name, Shape{channels}, DType::kFloat32,
                            initializer ? initializer : initializers::Constant(one ? 1.0 : 0.0), trainable);
  };
  Output gamma, beta;
  if (options.scale) gamma = variable("gamma", options.gamma_initializer, true, options.trainable);
  if (options.center) beta = variable("beta", options.beta_initializer, false, options.trainable);
  const ops::Variable mean = variable("moving_mean", options.moving_mean_initializer, false, false);
  const ops::Variable variance = variable("moving_variance", options.moving_variance_initializer, true, false);
  const auto filled = [&](float value) {
    return ops::Const(graph, std::vector<float>(static_cast<size_t>(channels), value));
  };
  if (!gamma.valid()) gamma = filled(1);
  if (!beta.valid()) beta = filled(0);
  const auto normalize = [&](bool training) {
    return (inputs.shape().rank() == 4 ? NormalizeImages : NormalizeRows)(
        inputs, gamma, beta, mean, variance, static_cast<float>(options.epsilon), training);
  };
  const Training& training = options.training;
  if (training.is_constant() && !training.constant()) return normalize(false).y;
  const Normalization result = normalize(true);
  UpdateMovingAverage(mean, result.mean, options.momentum, training);
  UpdateMovingAverage(variance, result.variance, options.momentum, training);
  return training.is_constant() ? result.y : ops::SelectV2(training.output(), result.y, normalize(false).y);
}

void AddUpdateOp(Output done) { done.graph().AddToCollection(kUpdateOps, done); }

std::vector<Node*> UpdateOps(Graph& graph) {
  std::vector<Node*> updates;
  for (const Output& done : graph.collection(kUpdateOps)) updates.push_back(done.node);
  return updates;
}

}  // namespace cohort::layers
