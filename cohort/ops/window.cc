#include "cohort/ops/window.h"

#include <algorithm>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/op_def.h"

namespace cohort::ops {
namespace {

std::string Listed(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += StrCat(text.empty() ? "" : ",", value);
  return "[" + text + "]";
}

// Dimensions are at most 2^40 (graph/node_builder.cc), so sums of a dimension and of such numbers fit into 64 bits.
constexpr int64_t kLargestAttr = std::numeric_limits<int32_t>::max();

void CheckRank4(const Shape& shape, const char* what) {
  if (shape.has_rank() && shape.rank() != 4) {
    throw InvalidArgumentError(StrCat("[ops/window] expected ", what, " of rank 4; got ", shape));
  }
}

int64_t DimOrUnknown(const Shape& shape, int i) { return shape.has_rank() ? shape.dim(i) : Shape::kUnknownDim; }

}  // namespace

std::array<int64_t, 2> SpatialAttr(const std::vector<int64_t>& values, const char* attr) {
  const bool positive =
      std::all_of(values.begin(), values.end(), [](int64_t value) { return value > 0 && value <= kLargestAttr; });
  if (values.size() != 4 || !positive || values[0] != 1 || values[3] != 1) {
    throw InvalidArgumentError(StrCat("[ops/window] expected ", attr,
                                      " of the form [1, rows, columns, 1] with positive numbers below 2^31; got ",
                                      Listed(values)));
  }
  return {values[1], values[2]};
}

void CheckChannelsLast(const std::string& data_format) {
  if (data_format == "NHWC") return;
  throw UnimplementedError(StrCat("[ops/window] expected data_format NHWC; got ", data_format,
                                  ": Transpose the value to [batch, rows, columns, channels]"));
}

void ReadExplicitPaddings(const std::vector<int64_t>& paddings, WindowAttrs& attrs) {
  if (attrs.padding != "EXPLICIT") {
    if (paddings.empty()) return;
    throw InvalidArgumentError(
        StrCat("[ops/window] expected no explicit_paddings with padding ", attrs.padding, "; got ", Listed(paddings)));
  }
  const bool valid =
      paddings.size() == 8 && paddings[0] == 0 && paddings[1] == 0 && paddings[6] == 0 && paddings[7] == 0 &&
      std::all_of(paddings.begin(), paddings.end(), [](int64_t value) { return value >= 0 && value <= kLargestAttr; });
  if (!valid) {
    throw InvalidArgumentError(
        StrCat("[ops/window] expected explicit_paddings [0, 0, top, bottom, left, right, 0, 0], none negative; got ",
               Listed(paddings)));
  }
  attrs.before = {paddings[2], paddings[4]};
  attrs.after = {paddings[3], paddings[5]};
}

WindowExtent PlaceWindow(const WindowAttrs& attrs, int axis, int64_t length, int64_t size) {
  const auto i = static_cast<size_t>(axis);
  if (length < 0 || size < 0) return {};
  if (size == 0) throw InvalidArgumentError("[ops/window] expected a window of at least one element; got an empty one");
  int64_t reach = 0;
  if (__builtin_mul_overflow(size - 1, attrs.dilations[i], &reach) || reach > (int64_t{1} << 62)) {
    throw InvalidArgumentError(StrCat("[ops/window] expected a window that can be counted; got ", size, " elements, ",
                                      attrs.dilations[i], " apart"));
  }
  ++reach;
  if (attrs.padding == "SAME") {
    const int64_t count = (length + attrs.strides[i] - 1) / attrs.strides[i];
    const int64_t padding = std::max<int64_t>(0, (count - 1) * attrs.strides[i] + reach - length);
    return {count, padding / 2, padding - padding / 2};
  }
  const int64_t padded = length + attrs.before[i] + attrs.after[i];
  if (padded < reach) {
    throw InvalidArgumentError(StrCat("[ops/window] expected at least ", reach, axis == 0 ? " rows" : " columns",
                                      " (padding included), which is what the window takes; got ", padded));
  }
  return {(padded - reach) / attrs.strides[i] + 1, attrs.before[i], attrs.after[i]};
}

Shape ConvolvedShape(const WindowAttrs& attrs, const Shape& input, const Shape& filter, bool depthwise) {
  CheckRank4(input, "an input [batch, rows, columns, channels]");
  CheckRank4(filter,
             depthwise ? "a filter [rows, columns, channels, multiplier]" : "a filter [rows, columns, in, out]");
  const int64_t channels = DimOrUnknown(input, 3), in = DimOrUnknown(filter, 2), last = DimOrUnknown(filter, 3);
  if (channels >= 0 && in >= 0) {
    const bool fits = depthwise ? channels == in : in > 0 && channels > 0 && channels % in == 0;
    if (!fits) {
      throw InvalidArgumentError(StrCat("[ops/window] expected a filter for the ", channels,
                                        " channels of the input; got input ", input, ", filter ", filter));
    }
    if (!depthwise && last >= 0 && last % (channels / in) != 0) {
      throw InvalidArgumentError(StrCat("[ops/window] expected a multiple of ", channels / in,
                                        " output channels, one share a group; got input ", input, ", filter ", filter));
    }
  }
  int64_t out = last;
  if (depthwise && (in < 0 || last < 0)) out = Shape::kUnknownDim;
  if (depthwise && in >= 0 && last >= 0 && __builtin_mul_overflow(in, last, &out)) {
    throw InvalidArgumentError(StrCat("[ops/window] expected channels that can be counted; got filter ", filter));
  }
  Shape shape{DimOrUnknown(input, 0), -1, -1, out};
  for (int axis = 0; axis < 2; ++axis) {
    shape.set_dim(axis + 1, PlaceWindow(attrs, axis, DimOrUnknown(input, axis + 1), DimOrUnknown(filter, axis)).count);
  }
  return shape;
}

Shape ImagesOfSizes(const Shape& sizes, const Shape& filter, const Shape& gradient) {
  if (!sizes.has_rank() || sizes.rank() != 2) return Shape::UnknownDims(4).MergedWith(sizes);
  CheckRank4(filter, "a filter [rows, columns, in, out]");
  CheckRank4(gradient, "a gradient [batch, rows, columns, channels]");
  return {DimOrUnknown(gradient, 0), sizes.dim(0), sizes.dim(1), DimOrUnknown(filter, 2)};
}

Shape PooledShape(const WindowAttrs& attrs, const Shape& input) {
  CheckRank4(input, "an input [batch, rows, columns, channels]");
  Shape shape{DimOrUnknown(input, 0), -1, -1, DimOrUnknown(input, 3)};
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t size = attrs.size[static_cast<size_t>(axis)];
    shape.set_dim(axis + 1, PlaceWindow(attrs, axis, DimOrUnknown(input, axis + 1), size).count);
  }
  return shape;
}

Output WithSameWindows(GradientContext& c, const char* op, const std::vector<Output>& inputs) {
  const OpDef& def = OpRegistry::Global().Get(op);
  NodeBuilder builder = c.graph().Op(op);
  for (const Output& input : inputs) builder.Input(input);
  for (const char* name : {"ksize", "strides", "dilations", "explicit_paddings", "padding", "data_format"}) {
    const auto attr = c.node().attrs().find(name);
    if (attr != c.node().attrs().end() && def.FindAttr(name) != nullptr) builder.Attr(name, attr->second);
  }
  return builder.Finish1();
}

}  // namespace cohort::ops
