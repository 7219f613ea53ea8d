// Layers for values of any shape:
// - Input, Dense, Embedding, Masking, Dropout;
// - Activation, ReLU, LeakyReLU, PReLU, ELU, Softmax, Rescaling, which change each element;
// - Flatten, Reshape, Permute, which change shapes;
// - Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate, Dot, which put several values together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

struct COHORT_EXPORT InputOptions {
  DType dtype = DType::kFloat32;  // data of other dtypes are converted to this dtype
  std::string name;
};
// Makes an input of a model. `shape` is the shape of one example. An input is the first item of a Sequential, or the
// beginning of a functional model.
COHORT_EXPORT LayerTensor Input(const Shape& shape, const InputOptions& options = {});

struct COHORT_EXPORT DenseOptions {
  ActivationFunction activation;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer;
  Regularizer bias_regularizer;
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Computes activation(x * kernel + bias), with a matrix product: x [batch, ..., in] becomes [batch, ..., units].
// Weights: kernel [in, units], bias [units].
COHORT_EXPORT LayerRef Dense(int64_t units, const DenseOptions& options = {});

struct COHORT_EXPORT LayerOptions {
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
COHORT_EXPORT LayerRef Activation(const ActivationFunction& activation, const LayerOptions& options = {});

struct COHORT_EXPORT ReLUOptions {
  std::optional<double> max_value;  // nullopt: no limit
  double negative_slope = 0.0;
  double threshold = 0.0;
  std::string name;
};
// Computes x above `threshold`, but at most max_value, and negative_slope * (x - threshold) elsewhere. Throws
// InvalidArgumentError for an option below 0.
COHORT_EXPORT LayerRef ReLU(const ReLUOptions& options = {});
struct COHORT_EXPORT LeakyReLUOptions {
  double negative_slope = 0.3;
  std::string name;
};
// Computes x above 0, and negative_slope * x elsewhere. Throws InvalidArgumentError for a slope below 0.
COHORT_EXPORT LayerRef LeakyReLU(const LeakyReLUOptions& options = {});
struct COHORT_EXPORT PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer;
  std::vector<int64_t> shared_axes;  // the axes along which elements have the same slope, such as {1, 2} for images
  std::string name;
  bool trainable = true;
};
// Computes x above 0, and alpha * x elsewhere. The slopes alpha are learned. Weights: alpha, which has the shape of one
// example, with 1 for each shared axis. Throws InvalidArgumentError for an axis that is the batch or is not there.
COHORT_EXPORT LayerRef PReLU(const PReLUOptions& options = {});
struct COHORT_EXPORT ELUOptions {
  double alpha = 1.0;
  std::string name;
};
// Computes x above 0, and alpha * (e^x - 1) elsewhere.
COHORT_EXPORT LayerRef ELU(const ELUOptions& options = {});
struct COHORT_EXPORT SoftmaxOptions {
  int axis = -1;  // axis 0 is the batch; -1 is the last axis
  std::string name;
};
// Computes e^x divided by the sum of e^x along the axis. If the mask of x is false, the result is 0, and the element
// does not count in the sum. Throws InvalidArgumentError for an input without this axis, and for a mask of another rank
// than the input's.
COHORT_EXPORT LayerRef Softmax(const SoftmaxOptions& options = {});

// One number, or a list with a number for each channel (index of the last axis).
class COHORT_EXPORT NumberOrList {
 public:
  NumberOrList(double number) : values_{number} {}
  NumberOrList(std::vector<double> values) : values_(std::move(values)), is_list_(true) {}
  bool is_list() const { return is_list_; }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
  bool is_list_ = false;
};
struct COHORT_EXPORT RescalingOptions {
  NumberOrList offset = 0.0;
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Computes x * scale + offset. Integers become float32. Throws InvalidArgumentError if a list has another length than
// the last axis.
COHORT_EXPORT LayerRef Rescaling(const NumberOrList& scale, const RescalingOptions& options = {});

struct COHORT_EXPORT DropoutOptions {
  int64_t seed = 0;  // even with equal seeds, layers and steps get different numbers (CallContext::StepSeed)
  std::string name;
};
// In training, sets each element to zero with probability `rate` and divides the others by 1 - rate. Outside of
// training, returns its input. Throws InvalidArgumentError for a rate outside of [0, 1).
COHORT_EXPORT LayerRef Dropout(double rate, const DropoutOptions& options = {});

struct COHORT_EXPORT EmbeddingOptions {
  Initializer embeddings_initializer = "random_uniform";
  Regularizer embeddings_regularizer;
  bool mask_zero = false;  // true: 0 pads; the result carries a mask, which is false if the input is 0
  std::string name;
  bool trainable = true;
};
// Replaces each integer i of the input by row i of the weight `embeddings` [input_dim, output_dim]. Integers
// [batch, ...] become [batch, ..., output_dim]. An integer outside of [0, input_dim) fails the step with
// InvalidArgumentError. The gradient is sparse: an update changes only the rows that occur.
COHORT_EXPORT LayerRef Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});

struct COHORT_EXPORT MaskingOptions {
  double mask_value = 0.0;
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Gives x [batch, steps, ..., features] a mask [batch, steps, ...]. It is false for a step all of whose features are
// mask_value, and the features of such a step become 0. Throws InvalidArgumentError for inputs of a rank below 2.
COHORT_EXPORT LayerRef Masking(const MaskingOptions& options = {});

// [batch, ...] becomes [batch, product of the other dimensions].
COHORT_EXPORT LayerRef Flatten(const LayerOptions& options = {});
// Gives each example the shape `target`. At most one dimension of `target` may be -1; it is computed from the others.
COHORT_EXPORT LayerRef Reshape(const std::vector<int64_t>& target, const LayerOptions& options = {});
// Reorders the axes of each example: axis i of the result is axis dims[i - 1] of the input. Axes count from 1; the
// batch stays first. Permute({2, 1}) turns [batch, a, b] into [batch, b, a]. Throws InvalidArgumentError if `dims` is
// no permutation of 1, 2, ..., and for inputs of another rank.
COHORT_EXPORT LayerRef Permute(const std::vector<int64_t>& dims, const LayerOptions& options = {});

// Elementwise functions of two or more inputs, which broadcast against each other. They throw InvalidArgumentError for
// fewer inputs. Subtract takes exactly two, and computes the first minus the second.
COHORT_EXPORT LayerRef Add(const LayerOptions& options = {});
COHORT_EXPORT LayerRef Subtract(const LayerOptions& options = {});
COHORT_EXPORT LayerRef Multiply(const LayerOptions& options = {});
COHORT_EXPORT LayerRef Average(const LayerOptions& options = {});
COHORT_EXPORT LayerRef Maximum(const LayerOptions& options = {});
COHORT_EXPORT LayerRef Minimum(const LayerOptions& options = {});
struct COHORT_EXPORT ConcatenateOptions {
  int axis = -1;  // axis 0 is the batch; -1 is the last axis
  std::string name;
};
COHORT_EXPORT LayerRef Concatenate(const ConcatenateOptions& options = {});
// The axis of each input of Dot: 1 (of both), or {2, 1}. A negative axis counts from the end. Axis 0 is the batch.
struct COHORT_EXPORT DotAxes {
  int64_t first, second;
  DotAxes(int64_t both) : DotAxes(both, both) {}
  DotAxes(int64_t first, int64_t second) : first(first), second(second) {}
};
struct COHORT_EXPORT DotOptions {
  bool normalize = false;  // true: the vectors are divided by their lengths first, which gives cosines
  std::string name;
};
// Computes the dot products of the vectors along an axis of the first of two inputs with those of the second, for each
// example. [batch, a..., k, b...] and [batch, c..., k, d...] become [batch, a..., b..., c..., d...], or [batch, 1] if
// there is no other axis. All dimensions but the batch must be known. Throws InvalidArgumentError if the axes are the
// batch, are not there, or have different sizes.
COHORT_EXPORT LayerRef Dot(const DotAxes& axes, const DotOptions& options = {});

}  // namespace cohort::keras
