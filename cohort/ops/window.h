// Windows that slide over the rows and columns of an image batch [batch, rows, columns, channels]: what the attributes
// of convolutions and pools say of them, and where they stand. Internal to the op modules and their kernels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/shape.h"

namespace cohort {
class GradientContext;
struct Output;
}  // namespace cohort

namespace cohort::ops {

// Elements [0] along the rows, [1] along the columns.
struct WindowAttrs {
  std::array<int64_t, 2> size{1, 1};  // of a pool; a convolution's is its filter's
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> dilations{1, 1};
  std::string padding;                  // "SAME", "VALID", "EXPLICIT"
  std::array<int64_t, 2> before{0, 0};  // padding where it is EXPLICIT
  std::array<int64_t, 2> after{0, 0};
};

// Positions of a window along one dimension, and the elements that it reaches beyond its ends.
struct WindowExtent {
  int64_t count = -1;  // -1 where the dimension is not known
  int64_t before = 0;
  int64_t after = 0;
};

// The middle two of four numbers that are given for [batch, rows, columns, channels]. Throws InvalidArgumentError
// unless there are four, all positive, the outer ones 1.
std::array<int64_t, 2> SpatialAttr(const std::vector<int64_t>& values, const char* attr);
// Throws UnimplementedError for an order other than NHWC.
void CheckChannelsLast(const std::string& data_format);
// `paddings` is the attribute explicit_paddings: before and after for each of the four dimensions. Throws
// InvalidArgumentError for what does not go with `attrs.padding`.
void ReadExplicitPaddings(const std::vector<int64_t>& paddings, WindowAttrs& attrs);

// Of a convolution: `source` is a Node or a ShapeContext. Throws as the functions above do.
template <typename Source>
WindowAttrs ConvolutionWindow(const Source& source) {
  CheckChannelsLast(source.template attr<std::string>("data_format"));
  WindowAttrs attrs;
  attrs.strides = SpatialAttr(source.template attr<std::vector<int64_t>>("strides"), "strides");
  attrs.dilations = SpatialAttr(source.template attr<std::vector<int64_t>>("dilations"), "dilations");
  attrs.padding = source.template attr<std::string>("padding");
  ReadExplicitPaddings(source.template attr<std::vector<int64_t>>("explicit_paddings"), attrs);
  return attrs;
}

// Of a pool.
template <typename Source>
WindowAttrs PoolWindow(const Source& source) {
  CheckChannelsLast(source.template attr<std::string>("data_format"));
  WindowAttrs attrs;
  attrs.size = SpatialAttr(source.template attr<std::vector<int64_t>>("ksize"), "ksize");
  attrs.strides = SpatialAttr(source.template attr<std::vector<int64_t>>("strides"), "strides");
  attrs.padding = source.template attr<std::string>("padding");
  return attrs;
}

// A window of `size` elements along dimension `axis` (0 rows, 1 columns) of `length` elements. SAME: ceil(length /
// stride) positions, the smaller half of the padding before. Else as many as fit. -1 is unknown. Throws
// InvalidArgumentError for a window that is larger than what it slides over.
WindowExtent PlaceWindow(const WindowAttrs& attrs, int axis, int64_t length, int64_t size);

// Shapes [batch, rows, columns, channels] that result, as far as they are known. `filter` is [rows, columns, in, out],
// `in` a divisor of the input's channels (then the convolution has groups); for a depthwise convolution [rows, columns,
// channels, multiplier]. Throw InvalidArgumentError for shapes that do not fit.
Shape ConvolvedShape(const WindowAttrs& attrs, const Shape& input, const Shape& filter, bool depthwise);
Shape PooledShape(const WindowAttrs& attrs, const Shape& input);

// A node of `op` with the windows of the node that is differentiated: those of its attributes that `op` has too.
Output WithSameWindows(GradientContext& c, const char* op, const std::vector<Output>& inputs);

}  // namespace cohort::ops
