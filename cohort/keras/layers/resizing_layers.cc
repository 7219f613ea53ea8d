// Layers that change the numbers of rows, columns and steps: ZeroPadding, Cropping and UpSampling, of images and of
// sequences.
//
// UpSampling2D with bilinear interpolation multiplies rows and columns by one constant matrix each. So it, its gradient
// and its ONNX form need no op of their own.
#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

// How much to add or to remove at the begin and at the end of each axis between the batch and the channels.
using AxisEnds = std::vector<std::pair<int64_t, int64_t>>;

AxisEnds EndsOf(const Borders& borders) { return {{borders.top, borders.bottom}, {borders.left, borders.right}}; }
AxisEnds EndsOf(const Ends& ends) { return {{ends.begin, ends.end}}; }

// The form of the ends in files: [[top, bottom], [left, right]] for images, [begin, end] for sequences.
ConfigValue EndsInFile(const AxisEnds& ends) {
  ConfigValue::List axes;
  for (const auto& [begin, end] : ends) axes.emplace_back(ConfigValue::List{begin, end});
  return ends.size() == 1 ? axes[0] : ConfigValue(axes);
}

void ReadEnds(ConfigReader& reader, const char* name, Borders& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) {
    if (!value.is_list() || value.AsList().size() != 2) {
      to = value.AsInt();
      return;
    }
    const RowsColumns rows = RowsColumnsOf(value.AsList()[0]), columns = RowsColumnsOf(value.AsList()[1]);
    to = Borders(std::pair(rows.rows, rows.columns), std::pair(columns.rows, columns.columns));
  });
}
void ReadEnds(ConfigReader& reader, const char* name, Ends& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) {
    const RowsColumns ends = RowsColumnsOf(value);
    to = Ends(ends.rows, ends.columns);
  });
}

void CheckImagesOrSequences(const std::vector<LayerInput>& inputs, size_t axes) {
  CheckInputRank(OnlyInput(inputs), static_cast<int>(axes) + 2,
                 axes == 2 ? "[batch, rows, columns, channels]" : "[batch, steps, channels]");
}

// Throws InvalidArgumentError if a number is negative.
void CheckEnds(const std::string& class_name, const char* what, const AxisEnds& ends) {
  std::vector<int64_t> all;
  for (const auto& [begin, end] : ends) all.insert(all.end(), {begin, end});
  if (*std::min_element(all.begin(), all.end()) >= 0) return;
  throw InvalidArgumentError(
      StrCat("[keras/", SnakeCase(class_name), "] expected a ", what, " of at least 0; got ", StrJoin(all, ", ")));
}

// Amounts is Borders for images, and Ends for sequences.
template <typename Amounts, LayerRef (*kMake)(const Amounts&, const LayerOptions&)>
class ZeroPaddingLayer final : public Layer {
 public:
  ZeroPaddingLayer(const char* class_name, const Amounts& padding, const LayerOptions& options)
      : Layer(class_name, options.name), padding_(EndsOf(padding)) {
    CheckEnds(class_name, "padding", padding_);
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckImagesOrSequences(inputs, padding_.size());
    return {};
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    AxisEnds all = padding_;
    all.insert(all.begin(), {0, 0});
    all.emplace_back(0, 0);
    return {ops::Pad(inputs[0], all)};
  }
  ConfigValue::Object Config() const override {
    return {{"padding", EndsInFile(padding_)}, {"data_format", "channels_last"}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    Amounts padding = 1;
    ReadEnds(reader, "padding", padding);
    reader.OnlyDefault("data_format", "channels_last");
    return kMake(padding, {.name = ReadName(reader)});
  }

 private:
  const AxisEnds padding_;
};
using ZeroPadding1DLayer = ZeroPaddingLayer<Ends, ZeroPadding1D>;
using ZeroPadding2DLayer = ZeroPaddingLayer<Borders, ZeroPadding2D>;

template <typename Amounts, LayerRef (*kMake)(const Amounts&, const LayerOptions&)>
class CroppingLayer final : public Layer {
 public:
  CroppingLayer(const char* class_name, const Amounts& cropping, const LayerOptions& options)
      : Layer(class_name, options.name), cropping_(EndsOf(cropping)) {
    CheckEnds(class_name, "cropping", cropping_);
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckImagesOrSequences(inputs, cropping_.size());
    for (size_t i = 0; i < cropping_.size(); ++i) {
      const auto& [begin, end] = cropping_[i];
      const int64_t size = KnownDim(inputs[0], static_cast<int>(i) + 1);
      if (begin < size && end < size - begin) continue;
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected a cropping below ", size,
                                        " of axis ", i + 1, " of the input ", inputs[0].shape, "; got ", begin, ", ",
                                        end));
    }
    return {};
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    std::vector<int64_t> begin = {0}, size = {-1};
    for (size_t i = 0; i < cropping_.size(); ++i) {
      begin.push_back(cropping_[i].first);
      size.push_back(inputs[0].shape().dim(static_cast<int>(i) + 1) - cropping_[i].first - cropping_[i].second);
    }
    begin.push_back(0);
    size.push_back(-1);
    return {ops::Slice(inputs[0], begin, size)};
  }
  ConfigValue::Object Config() const override {
    ConfigValue::Object config = {{"cropping", EndsInFile(cropping_)}};
    if (cropping_.size() == 2) config.emplace_back("data_format", "channels_last");
    return config;
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    Amounts cropping = std::is_same_v<Amounts, Borders> ? 0 : 1;
    ReadEnds(reader, "cropping", cropping);
    reader.OnlyDefault("data_format", "channels_last");
    return kMake(cropping, {.name = ReadName(reader)});
  }

 private:
  const AxisEnds cropping_;
};
using Cropping1DLayer = CroppingLayer<Ends, Cropping1D>;
using Cropping2DLayer = CroppingLayer<Borders, Cropping2D>;

// Returns x [batch, ...] with each element along `axis` repeated.
Output Repeated(Output x, int axis, int64_t times) {
  if (times == 1) return x;
  // The axes behind `axis` become one, which is repeated as a whole.
  std::vector<int64_t> result = ReshapeDims(x.shape());
  const auto i = static_cast<size_t>(axis);
  int64_t before = 1, behind = 1;
  for (size_t k = 1; k <= i; ++k) before *= result[k];
  for (size_t k = i + 1; k < result.size(); ++k) behind *= result[k];
  result[i] *= times;
  result[0] = -1;
  return ops::Reshape(ops::Tile(ops::Reshape(x, {-1, before, behind}), {1, 1, times}), result);
}

// Returns the matrix [size * times, size] that interpolates `size` values linearly. The center of value i is at i +
// 0.5.
Tensor InterpolationMatrix(int64_t size, int64_t times) {
  Tensor matrix(DType::kFloat32, Shape{size * times, size});
  float* row = matrix.data<float>();
  std::fill(row, row + matrix.num_elements(), 0.0f);
  for (int64_t i = 0; i < size * times; ++i, row += size) {
    const double place = std::max(0.0, (static_cast<double>(i) + 0.5) / static_cast<double>(times) - 0.5);
    const auto left = static_cast<int64_t>(place);
    const double part = place - static_cast<double>(left);
    row[left] += static_cast<float>(1 - part);
    row[std::min(left + 1, size - 1)] += static_cast<float>(part);
  }
  return matrix;
}

// Returns x [batch, a, b] with the axis `a` multiplied by the matrix.
Output Interpolated(Output x, int64_t times) {
  if (times == 1) return x;
  const Output matrix = ops::Const(x.graph(), InterpolationMatrix(x.shape().dim(1), times));
  return ops::BatchMatMul(ops::Cast(matrix, x.dtype()), x);
}

class UpSampling2DLayer final : public Layer {
 public:
  UpSampling2DLayer(const RowsColumns& size, const UpSampling2DOptions& options)
      : Layer("UpSampling2D", options.name), size_(size), interpolation_(options.interpolation) {
    if (size.rows <= 0 || size.columns <= 0) {
      throw InvalidArgumentError(
          StrCat("[keras/up_sampling2d] expected a positive size; got ", size.rows, " x ", size.columns));
    }
    if (interpolation_ != "nearest" && interpolation_ != "bilinear") {
      throw InvalidArgumentError(StrCat(
          "[keras/up_sampling2d] expected the interpolation 'nearest' or 'bilinear'; got '", interpolation_, "'"));
    }
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckImagesOrSequences(inputs, 2);
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const std::vector<int64_t> dims = ReshapeDims(inputs[0].shape());
    if (interpolation_ == "nearest") return {Repeated(Repeated(inputs[0], 2, size_.columns), 1, size_.rows)};
    const int64_t rows = dims[1] * size_.rows, columns = dims[2] * size_.columns, channels = dims[3];
    const Output flat = ops::Reshape(ctx.Computed(inputs[0]), {-1, dims[1], dims[2] * channels});
    const Output high = ops::Reshape(Interpolated(flat, size_.rows), {-1, dims[2], channels});
    return {ops::Reshape(Interpolated(high, size_.columns), {-1, rows, columns, channels})};
  }
  ConfigValue::Object Config() const override {
    return {{"size", ConfigValue::List{size_.rows, size_.columns}},
            {"data_format", "channels_last"},
            {"interpolation", interpolation_}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    UpSampling2DOptions options = {.name = ReadName(reader)};
    RowsColumns size = 2;
    Read(reader, "size", size);
    reader.Read("interpolation", options.interpolation);
    reader.OnlyDefault("data_format", "channels_last");
    return UpSampling2D(size, options);
  }

 private:
  const RowsColumns size_;
  const std::string interpolation_;
};

class UpSampling1DLayer final : public Layer {
 public:
  UpSampling1DLayer(int64_t size, const LayerOptions& options) : Layer("UpSampling1D", options.name), size_(size) {
    if (size <= 0) throw InvalidArgumentError(StrCat("[keras/up_sampling1d] expected a positive size; got ", size));
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckImagesOrSequences(inputs, 1);
    return {};
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    return {Repeated(inputs[0], 1, size_)};
  }
  ConfigValue::Object Config() const override { return {{"size", size_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    int64_t size = 2;
    Read(reader, "size", size);
    return UpSampling1D(size, {.name = ReadName(reader)});
  }

 private:
  const int64_t size_;
};

}  // namespace

LayerRef ZeroPadding1D(const Ends& padding, const LayerOptions& options) {
  return MakeLayer<ZeroPadding1DLayer>("ZeroPadding1D", padding, options).WithInputShape(options.input_shape);
}
LayerRef ZeroPadding2D(const Borders& padding, const LayerOptions& options) {
  return MakeLayer<ZeroPadding2DLayer>("ZeroPadding2D", padding, options).WithInputShape(options.input_shape);
}
LayerRef Cropping1D(const Ends& cropping, const LayerOptions& options) {
  return MakeLayer<Cropping1DLayer>("Cropping1D", cropping, options).WithInputShape(options.input_shape);
}
LayerRef Cropping2D(const Borders& cropping, const LayerOptions& options) {
  return MakeLayer<Cropping2DLayer>("Cropping2D", cropping, options).WithInputShape(options.input_shape);
}
LayerRef UpSampling1D(int64_t size, const LayerOptions& options) {
  return MakeLayer<UpSampling1DLayer>(size, options).WithInputShape(options.input_shape);
}
LayerRef UpSampling2D(RowsColumns size, const UpSampling2DOptions& options) {
  return MakeLayer<UpSampling2DLayer>(size, options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> ResizingLayerMakers() {
  return {{"ZeroPadding1D", ZeroPadding1DLayer::FromConfig}, {"ZeroPadding2D", ZeroPadding2DLayer::FromConfig},
          {"Cropping1D", Cropping1DLayer::FromConfig},       {"Cropping2D", Cropping2DLayer::FromConfig},
          {"UpSampling1D", UpSampling1DLayer::FromConfig},   {"UpSampling2D", UpSampling2DLayer::FromConfig}};
}

}  // namespace cohort::keras
