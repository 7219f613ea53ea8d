// Layers for sequences [batch, steps, channels]: convolutions, pools, padding and cropping. Each computes what the
// layer of image_layers.h with the same name and a 2 does for images of one row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// In the options of this file, `padding` is "valid" (no padding) or "same". With "same", steps are added at both ends
// so that the output has ceil(input / stride) steps. For convolutions, the added steps are zeros. All layers throw
// InvalidArgumentError for sizes that are not positive, for an unknown padding, and for inputs of another rank.
struct COHORT_EXPORT Conv1DOptions {
  int64_t strides = 1;
  // Also "causal": (kernel_size - 1) * dilation_rate zeros are added at the begin alone. Then output step t depends on
  // no input step after t (if strides is 1).
  std::string padding = "valid";
  int64_t dilation_rate = 1;
  int64_t groups = 1;
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
// Computes activation(convolution + bias): output[b, t, f] sums input[b, t * strides + i * dilation_rate, c] *
// kernel[i, c, f] over i and c. [batch, steps, channels] becomes [batch, new steps, filters]. Weights: kernel
// [kernel_size, channels / groups, filters], bias [filters].
COHORT_EXPORT LayerRef Conv1D(int64_t filters, int64_t kernel_size, const Conv1DOptions& options = {});

struct COHORT_EXPORT DepthwiseConv1DOptions {
  int64_t strides = 1;
  std::string padding = "valid";
  int64_t depth_multiplier = 1;
  int64_t dilation_rate = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer;
  Regularizer bias_regularizer;
  DepthwiseFans depthwise_fans = DepthwiseFans::kTrue;
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Convolves each channel with filters of its own. Weights: kernel [kernel_size, channels, multiplier], bias [channels *
// multiplier].
COHORT_EXPORT LayerRef DepthwiseConv1D(int64_t kernel_size, const DepthwiseConv1DOptions& options = {});

struct COHORT_EXPORT SeparableConv1DOptions {
  int64_t strides = 1;
  std::string padding = "valid";
  int64_t dilation_rate = 1;
  int64_t depth_multiplier = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer;
  Regularizer pointwise_regularizer;
  Regularizer bias_regularizer;
  DepthwiseFans depthwise_fans = DepthwiseFans::kTrue;
  std::string name;
  bool trainable = true;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// A depthwise convolution, directly followed by a convolution of one step, bias and activation. Weights:
// depthwise_kernel [kernel_size, channels, multiplier], pointwise_kernel [1, channels * multiplier, filters], bias
// [filters].
COHORT_EXPORT LayerRef SeparableConv1D(int64_t filters, int64_t kernel_size,
                                       const SeparableConv1DOptions& options = {});

struct COHORT_EXPORT Conv1DTransposeOptions {
  int64_t strides = 1;
  std::string padding = "valid";
  std::optional<int64_t> output_padding;  // as in Conv2DTransposeOptions
  int64_t dilation_rate = 1;
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
// As Conv2DTranspose, along the steps, with the same number of steps as Conv2DTranspose has rows. Weights: kernel
// [kernel_size, filters, channels], bias [filters].
COHORT_EXPORT LayerRef Conv1DTranspose(int64_t filters, int64_t kernel_size,
                                       const Conv1DTransposeOptions& options = {});

struct COHORT_EXPORT Pooling1DOptions {
  std::optional<int64_t> strides;  // default: the size of the pool
  std::string padding = "valid";
  std::string name;
};
// Compute the largest element, or the mean, of each window of steps in each channel. Only steps of the sequence count,
// not those of the padding.
COHORT_EXPORT LayerRef MaxPooling1D(int64_t pool_size = 2, const Pooling1DOptions& options = {});
COHORT_EXPORT LayerRef AveragePooling1D(int64_t pool_size = 2, const Pooling1DOptions& options = {});
// Keras's other names of the two. Summaries and files have the names above, as Keras's have.
inline LayerRef MaxPool1D(int64_t pool_size = 2, const Pooling1DOptions& options = {}) {
  return MaxPooling1D(pool_size, options);
}
inline LayerRef AvgPool1D(int64_t pool_size = 2, const Pooling1DOptions& options = {}) {
  return AveragePooling1D(pool_size, options);
}

struct COHORT_EXPORT GlobalPooling1DOptions {
  bool keepdims = false;  // true: the result is [batch, 1, features]
  std::string name;
};
// Compute the mean, or the largest element, over the steps. The result is [batch, features], unless keepdims.
COHORT_EXPORT LayerRef GlobalAveragePooling1D(const GlobalPooling1DOptions& options = {});
COHORT_EXPORT LayerRef GlobalMaxPooling1D(const GlobalPooling1DOptions& options = {});

// Repeats each step `size` times: [batch, steps, channels] becomes [batch, steps * size, channels]. The number of steps
// must be known.
COHORT_EXPORT LayerRef UpSampling1D(int64_t size = 2, const LayerOptions& options = {});

// How many steps to add or to remove: 1 (at each end), or {1, 2} (1 at the begin, 2 at the end).
struct COHORT_EXPORT Ends {
  int64_t begin, end;
  Ends(int64_t each) : Ends(each, each) {}
  Ends(int64_t begin, int64_t end) : begin(begin), end(end) {}
};
// Adds zeros at both ends of each sequence. Throws InvalidArgumentError for a negative number.
COHORT_EXPORT LayerRef ZeroPadding1D(const Ends& padding = 1, const LayerOptions& options = {});
// Removes steps at both ends of each sequence. The number of steps must be known. Throws InvalidArgumentError for a
// negative number, and if no step would be left.
COHORT_EXPORT LayerRef Cropping1D(const Ends& cropping = 1, const LayerOptions& options = {});

// Repeats each vector: [batch, features] becomes [batch, n, features]. Throws InvalidArgumentError if n is not
// positive.
COHORT_EXPORT LayerRef RepeatVector(int64_t n, const LayerOptions& options = {});

}  // namespace cohort::keras
