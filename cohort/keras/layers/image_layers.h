// Layers for images [batch, rows, columns, channels]: convolutions, pools, padding, cropping and enlargement. Those for
// sequences are in sequence_layers.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// Two numbers, for rows and for columns: 3 (for rows and columns), or {3, 5}.
struct COHORT_EXPORT RowsColumns {
  int64_t rows;
  int64_t columns;
  RowsColumns(int64_t both) : rows(both), columns(both) {}
  RowsColumns(int64_t rows, int64_t columns) : rows(rows), columns(columns) {}
};

// In the options of this file, `padding` is "valid" (no padding) or "same". With "same", elements are added at the
// borders so that the output has ceil(input / stride) rows and columns. For convolutions, the added elements are zeros.
struct COHORT_EXPORT Conv2DOptions {
  RowsColumns strides = 1;
  std::string padding = "valid";
  RowsColumns dilation_rate = 1;
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
// Weights: kernel [rows, columns, channels / groups, filters], bias [filters].
COHORT_EXPORT LayerRef Conv2D(int64_t filters, RowsColumns kernel_size, const Conv2DOptions& options = {});

// Says how the fans of a depthwise kernel [rows, columns, channels, multiplier] are counted. Initializers such as
// "glorot_uniform" use the fans of a kernel: how many inputs an output has, and how many outputs an input has.
enum class DepthwiseFans {
  // The true numbers: an output has rows * columns inputs, and an input has rows * columns * multiplier outputs.
  kTrue,
  // Keras's rule for all kernels, which counts rows * columns * channels inputs. With it, each depthwise layer divides
  // the size of its signal by about sqrt(channels / 2), and a stack of such layers does not learn.
  kKeras,
};

struct COHORT_EXPORT DepthwiseConv2DOptions {
  RowsColumns strides = 1;
  std::string padding = "valid";
  int64_t depth_multiplier = 1;
  RowsColumns dilation_rate = 1;
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
// Convolves each channel with filters of its own: output channel c * multiplier + m depends only on channel c. Weights:
// kernel [rows, columns, channels, multiplier], bias [channels * multiplier].
COHORT_EXPORT LayerRef DepthwiseConv2D(RowsColumns kernel_size, const DepthwiseConv2DOptions& options = {});

struct COHORT_EXPORT SeparableConv2DOptions {
  RowsColumns strides = 1;
  std::string padding = "valid";
  RowsColumns dilation_rate = 1;
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
// A depthwise convolution, directly followed by a 1 x 1 convolution, bias and activation. Weights: depthwise_kernel
// [rows, columns, channels, multiplier], pointwise_kernel [1, 1, channels * multiplier, filters], bias [filters].
COHORT_EXPORT LayerRef SeparableConv2D(int64_t filters, RowsColumns kernel_size,
                                       const SeparableConv2DOptions& options = {});

struct COHORT_EXPORT Conv2DTransposeOptions {
  RowsColumns strides = 1;
  std::string padding = "valid";
  // How many rows and columns the result has more than the smallest one that fits; below the strides. By default, the
  // result has rows * strides rows with "same", and (rows - 1) * strides + max(kernel rows, strides) with "valid". If
  // it is given, the result has (rows - 1) * strides + output_padding + k rows. k is the number of rows of the kernel,
  // dilation included, with "valid", and k % 2 of it with "same". The same holds for columns.
  std::optional<RowsColumns> output_padding;
  RowsColumns dilation_rate = 1;  // 1 if strides are larger than 1
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
// Computes the transposed convolution, which makes images larger if strides are larger than 1: each element of the
// input adds its multiple of the kernel to the result, `strides` from the multiple of its neighbour. It is the gradient
// of a Conv2D with these options by its input. Rows and columns of the input must be known. Weights: kernel [rows,
// columns, filters, channels], bias [filters]. Throws InvalidArgumentError for an output_padding that does not fit, and
// for both strides and a dilation_rate above 1.
COHORT_EXPORT LayerRef Conv2DTranspose(int64_t filters, RowsColumns kernel_size,
                                       const Conv2DTransposeOptions& options = {});

struct COHORT_EXPORT Pooling2DOptions {
  std::optional<RowsColumns> strides;  // default: the size of the pool
  std::string padding = "valid";
  std::string name;
};
// Compute the largest element, or the mean, of each window in each channel. Only elements of the image count,
// not those of the padding.
COHORT_EXPORT LayerRef MaxPooling2D(RowsColumns pool_size = 2, const Pooling2DOptions& options = {});
COHORT_EXPORT LayerRef AveragePooling2D(RowsColumns pool_size = 2, const Pooling2DOptions& options = {});
// Keras's other names of the two. Summaries and files have the names above, as Keras's have.
inline LayerRef MaxPool2D(RowsColumns pool_size = 2, const Pooling2DOptions& options = {}) {
  return MaxPooling2D(pool_size, options);
}
inline LayerRef AvgPool2D(RowsColumns pool_size = 2, const Pooling2DOptions& options = {}) {
  return AveragePooling2D(pool_size, options);
}

struct COHORT_EXPORT GlobalPooling2DOptions {
  bool keepdims = false;  // true: the result is [batch, 1, 1, channels]
  std::string name;
};
// Compute the mean, or the largest element, over rows and columns. The result is [batch, channels], unless keepdims.
COHORT_EXPORT LayerRef GlobalAveragePooling2D(const GlobalPooling2DOptions& options = {});
COHORT_EXPORT LayerRef GlobalMaxPooling2D(const GlobalPooling2DOptions& options = {});

struct COHORT_EXPORT UpSampling2DOptions {
  // "nearest": each pixel is repeated. "bilinear": pixels between the centers of input pixels are interpolated
  // linearly, and those outside of them have the value of the nearest pixel.
  std::string interpolation = "nearest";
  std::string name;
  std::optional<Shape> input_shape;  // of one example; see Sequential::Add
};
// Multiplies the numbers of rows and columns: [batch, rows, columns, channels] becomes [batch, rows * size.rows,
// columns * size.columns, channels]. Rows and columns must be known. Throws InvalidArgumentError for another
// interpolation, and for sizes that are not positive.
COHORT_EXPORT LayerRef UpSampling2D(RowsColumns size = 2, const UpSampling2DOptions& options = {});

// How many rows and columns to add or to remove: 1 (on each side), {2, 3} (2 rows above and below, and 3 columns on the
// left and on the right), or {{1, 2}, {3, 4}} (1 row above, 2 below, 3 columns on the left, 4 on the right).
struct COHORT_EXPORT Borders {
  int64_t top, bottom, left, right;
  Borders(int64_t each) : Borders(each, each) {}
  Borders(int64_t rows, int64_t columns) : top(rows), bottom(rows), left(columns), right(columns) {}
  Borders(const std::pair<int64_t, int64_t>& rows, const std::pair<int64_t, int64_t>& columns)
      : top(rows.first), bottom(rows.second), left(columns.first), right(columns.second) {}
};
// Adds zeros around each image. Throws InvalidArgumentError for a negative number.
COHORT_EXPORT LayerRef ZeroPadding2D(const Borders& padding = 1, const LayerOptions& options = {});
// Removes rows and columns at the borders of each image. Rows and columns must be known. Throws InvalidArgumentError
// for a negative number, and if no row or column would be left.
COHORT_EXPORT LayerRef Cropping2D(const Borders& cropping = 0, const LayerOptions& options = {});

}  // namespace cohort::keras
