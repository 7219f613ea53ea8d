// Windows that slide over the rows and columns of images [batch, rows, columns, channels]: reads the attributes of
// convolutions and pools, and computes the positions of windows. Internal to the op modules and their kernels.
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

// The attributes of a window. Element [0] is for the rows, [1] for the columns.
struct WindowAttrs {
  std::array<int64_t, 2> size{1, 1};  // size of a pool's window; not used for a convolution, whose filter has the size
  std::array<int64_t, 2> strides{1, 1};
  std::array<int64_t, 2> dilations{1, 1};
  std::string padding;                  // "SAME", "VALID", "EXPLICIT"
  std::array<int64_t, 2> before{0, 0};  // the padding if it is EXPLICIT
  std::array<int64_t, 2> after{0, 0};
};

// The number of positions of a window along one dimension, and the number of padding elements before and after the
// dimension.
struct WindowExtent {
  int64_t count = -1;  // -1 if the dimension is not known
  int64_t before = 0;
  int64_t after = 0;
};

// Returns the middle two of four numbers, which are given for [batch, rows, columns, channels]. Throws
// InvalidArgumentError unless there are four positive numbers, of which the first and the last are 1.
std::array<int64_t, 2> SpatialAttr(const std::vector<int64_t>& values, const char* attr);
// Throws UnimplementedError for an order other than NHWC.
void CheckChannelsLast(const std::string& data_format);
// Reads the attribute explicit_paddings into attrs.before and attrs.after. If `attrs.padding` is EXPLICIT, it has two
// numbers, before and after, for each of the four dimensions. Otherwise it is empty. Throws InvalidArgumentError for
// other paddings, for a negative number, and for a padding of batch or channels.
void ReadExplicitPaddings(const std::vector<int64_t>& paddings, WindowAttrs& attrs);

// Returns the window of a convolution. `source` is a Node or a ShapeContext. Throws what CheckChannelsLast, SpatialAttr
// and ReadExplicitPaddings throw.
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

// Returns the window of a pool. `source` is a Node or a ShapeContext. Throws what CheckChannelsLast and SpatialAttr
// throw.
template <typename Source>
WindowAttrs PoolWindow(const Source& source) {
  CheckChannelsLast(source.template attr<std::string>("data_format"));
  WindowAttrs attrs;
  attrs.size = SpatialAttr(source.template attr<std::vector<int64_t>>("ksize"), "ksize");
  attrs.strides = SpatialAttr(source.template attr<std::vector<int64_t>>("strides"), "strides");
  attrs.padding = source.template attr<std::string>("padding");
  return attrs;
}

// Places a window of `size` elements along dimension `axis` (0 rows, 1 columns) of `length` elements. With SAME there
// are ceil(length / stride) positions, and the smaller half of the padding comes before the dimension. Otherwise there
// are as many positions as fit. -1 means that `length` or `size` is unknown; then `count` is -1 too. Throws
// InvalidArgumentError for a `size` of 0 and, unless the padding is SAME, for a window that is larger than the padded
// dimension.
WindowExtent PlaceWindow(const WindowAttrs& attrs, int axis, int64_t length, int64_t size);

// Return the shape of the result [batch, rows, columns, channels]; unknown dimensions are -1. `filter` is [rows,
// columns, in, out]: `in` is the number of the input's channels, or a divisor of it if the convolution has groups. For
// a depthwise convolution `filter` is [rows, columns, channels, multiplier]. Throw InvalidArgumentError for shapes that
// do not fit.
Shape ConvolvedShape(const WindowAttrs& attrs, const Shape& input, const Shape& filter, bool depthwise);
Shape PooledShape(const WindowAttrs& attrs, const Shape& input);
// Returns the shape of the result of Conv2DBackpropInput. `sizes` is what the op's first input says: the shape itself,
// or [rows, columns]. In the second case the batch is that of `gradient`, and the channels are those of `filter`.
// Unknown dimensions are -1.
Shape ImagesOfSizes(const Shape& sizes, const Shape& filter, const Shape& gradient);

// Adds a node of `op` and returns its output. The node gets the window attributes of the
// differentiated node, except those that `op` does not have.
Output WithSameWindows(GradientContext& c, const char* op, const std::vector<Output>& inputs);

}  // namespace cohort::ops
