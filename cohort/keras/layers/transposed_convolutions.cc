// Conv1DTranspose and Conv2DTranspose. The op is the gradient of a convolution by its input, which has the size of the
// layer's result. The layer computes this size as Keras does.
#include <algorithm>
#include <optional>

#include "cohort/keras/layers/window_options.h"

namespace cohort::keras {
namespace {

// How one axis of the result follows from an axis of the input.
struct TransposedAxis {
  int64_t kernel;  // how many elements the window spans, dilation included
  int64_t stride;
  bool same;
  std::optional<int64_t> output_padding;

  int64_t ResultSize(int64_t input) const {
    if (!same) return (input - 1) * stride + kernel + output_padding.value_or(std::max(kernel, stride) - kernel);
    return output_padding ? (input - 1) * stride + kernel % 2 + *output_padding : input * stride;
  }
};

template <typename Options, LayerRef (*kMake)(int64_t, WindowSize<Options>, const Options&)>
class TransposedLayer final : public Layer {
 public:
  TransposedLayer(const char* class_name, int64_t filters, WindowSize<Options> kernel_size, const Options& options)
      : Layer(class_name, options.name, options.trainable),
        filters_(filters),
        size_(kernel_size),
        options_(options),
        window_(CheckedWindow(class_name, kernel_size, options)) {
    CheckFilters(class_name, filters);
    const auto [rows, columns] = window_.strides;
    if (options.output_padding) {
      const RowsColumns padding = InImage(*options.output_padding);
      // The one row of a sequence has no padding of its own.
      const bool rows_fit = kOfSequences<Options> || (padding.rows >= 0 && padding.rows < rows);
      if (!rows_fit || padding.columns < 0 || padding.columns >= columns) {
        throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name),
                                          "] expected an output_padding of at least 0 and below the strides ", rows,
                                          " x ", columns, "; got ", padding.rows, " x ", padding.columns));
      }
    }
    if (std::max(rows, columns) > 1 && std::max(window_.dilations[0], window_.dilations[1]) > 1) {
      throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name),
                                        "] expected strides or a dilation_rate of 1; got ", rows, " x ", columns,
                                        " and ", window_.dilations[0], " x ", window_.dilations[1]));
    }
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    CheckConvolutionInput<Options>(inputs);
    for (int axis = 1; axis < inputs[0].shape.rank(); ++axis) KnownDim(inputs[0], axis);
    std::vector<WeightSpec> weights = {{.name = "kernel",
                                        .shape = KernelShape(size_, filters_, KnownDim(inputs[0], -1)),
                                        .initializer = options_.kernel_initializer,
                                        .regularizer = options_.kernel_regularizer}};
    if (options_.use_bias) weights.push_back(BiasSpec(options_, filters_));
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const Output images = ImageOf<Options>(ctx.Computed(inputs[0]));
    const Output kernel = ImageKernelOf<Options>(ctx.weight("kernel"));
    const ops::IntList sizes = {ResultSize(images, 0), ResultSize(images, 1)};
    return {Finished(ctx, options_, ops::Conv2DBackpropInput(sizes, kernel, images, window_))};
  }

  ConfigValue::Object Config() const override {
    return ConvolutionConfig(
        size_, options_,
        {{"filters", filters_},
         {"output_padding", options_.output_padding ? SizeInFile(*options_.output_padding) : ConfigValue()},
         {"kernel_initializer", options_.kernel_initializer.Serialized()},
         {"kernel_regularizer", options_.kernel_regularizer.Serialized()},
         {"kernel_constraint", nullptr}});
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    using Size = WindowSize<Options>;
    auto options = ReadConvolution<Options>(reader);
    reader.ReadBy("output_padding",
                  [&](const ConfigValue& value) { options.output_padding = SizeFromFile<Size>(value); });
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    return kMake(reader.Required("filters").AsInt(), SizeFromFile<Size>(reader.Required("kernel_size")), options);
  }

 private:
  // Returns how many rows (axis 0) or columns (axis 1) the result has. Throws InvalidArgumentError if a convolution of
  // so many would not return those of the input.
  int64_t ResultSize(Output images, int axis) const {
    if (kOfSequences<Options> && axis == 0) return 1;
    const auto i = static_cast<size_t>(axis);
    const auto of = [axis](const RowsColumns& size) { return axis == 0 ? size.rows : size.columns; };
    TransposedAxis result = {(of(InImage(size_)) - 1) * window_.dilations[i] + 1, window_.strides[i],
                             window_.padding == "SAME", std::nullopt};
    if (options_.output_padding) result.output_padding = of(InImage(*options_.output_padding));
    const int64_t input = images.shape().dim(axis + 1), size = result.ResultSize(input);
    if (!result.same || (size + result.stride - 1) / result.stride == input) return size;
    throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name()), "] expected an output_padding that gives ",
                                      input, " elements a result of ", (input - 1) * result.stride + 1, " to ",
                                      input * result.stride, "; got ", *result.output_padding, ", which gives ", size));
  }

  const int64_t filters_;
  const WindowSize<Options> size_;
  const Options options_;
  const ops::ConvolutionOptions window_;
};
using Conv1DTransposeLayer = TransposedLayer<Conv1DTransposeOptions, Conv1DTranspose>;
using Conv2DTransposeLayer = TransposedLayer<Conv2DTransposeOptions, Conv2DTranspose>;

}  // namespace

LayerRef Conv1DTranspose(int64_t filters, int64_t kernel_size, const Conv1DTransposeOptions& options) {
  return MakeLayer<Conv1DTransposeLayer>("Conv1DTranspose", filters, kernel_size, options)
      .WithInputShape(options.input_shape);
}
LayerRef Conv2DTranspose(int64_t filters, RowsColumns kernel_size, const Conv2DTransposeOptions& options) {
  return MakeLayer<Conv2DTransposeLayer>("Conv2DTranspose", filters, kernel_size, options)
      .WithInputShape(options.input_shape);
}

std::vector<LayerMaker> TransposedLayerMakers() {
  return {{"Conv1DTranspose", Conv1DTransposeLayer::FromConfig}, {"Conv2DTranspose", Conv2DTransposeLayer::FromConfig}};
}

}  // namespace cohort::keras
