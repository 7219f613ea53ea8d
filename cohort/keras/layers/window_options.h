// Parts that layers with windows share. These layers are convolutions and pools. The parts are checks, options in
// files, bias and activation, and the form in which sequences are computed. Internal to keras/.
//
// The layers are templates of their options. Layers for images have sizes of windows as RowsColumns. Layers for
// sequences [batch, steps, channels] have them as int64_t. They compute with images [batch, 1, steps, channels] and
// with kernels of one row, so that there are no kernels and ONNX forms for sequences.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/string_names.h"
#include "cohort/ops/array.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/nn.h"

namespace cohort::keras {

// Returns "SAME" for "same" and "VALID" for "valid". Throws InvalidArgumentError for another name.
std::string OpPadding(const std::string& padding);  // pooling_layers.cc

// The type of the sizes in the options of a convolution: RowsColumns for images, int64_t for sequences.
template <typename Options>
using WindowSize = decltype(Options::strides);
template <typename Options>
constexpr bool kOfSequences = std::is_same_v<WindowSize<Options>, int64_t>;

// The size in the image as which a sequence is computed.
inline RowsColumns InImage(const RowsColumns& size) { return size; }
inline RowsColumns InImage(int64_t steps) { return {1, steps}; }

inline ConfigValue SizeInFile(const RowsColumns& size) { return ConfigValue::List{size.rows, size.columns}; }
inline ConfigValue SizeInFile(int64_t steps) { return ConfigValue::List{steps}; }

template <typename Size>
Size SizeFromFile(const ConfigValue& value) {
  if constexpr (std::is_same_v<Size, int64_t>) {
    return StepsOf(value);
  } else {
    return RowsColumnsOf(value);
  }
}

inline Shape KernelShape(const RowsColumns& size, int64_t in, int64_t out) {
  return Shape{size.rows, size.columns, in, out};
}
inline Shape KernelShape(int64_t steps, int64_t in, int64_t out) { return Shape{steps, in, out}; }

template <typename Options>
void CheckConvolutionInput(const std::vector<LayerInput>& inputs) {
  CheckInputRank(OnlyInput(inputs), kOfSequences<Options> ? 3 : 4,
                 kOfSequences<Options> ? "[batch, steps, channels]" : "[batch, rows, columns, channels]");
}

// Returns the value or the kernel as an image or its kernel.
template <typename Options>
Output ImageOf(Output x) {
  return kOfSequences<Options> ? ops::ExpandDims(x, 1) : x;
}
template <typename Options>
Output ImageKernelOf(Output kernel) {
  return kOfSequences<Options> ? ops::ExpandDims(kernel, 0) : kernel;
}

inline void CheckPositive(const std::string& class_name, const char* what, const RowsColumns& value) {
  if (value.rows > 0 && value.columns > 0) return;
  throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name), "] expected positive ", what, "; got ",
                                    value.rows, " x ", value.columns));
}

inline void CheckFilters(const std::string& class_name, int64_t filters) {
  if (filters > 0) return;
  throw InvalidArgumentError(StrCat("[keras/", SnakeCase(class_name), "] expected filters > 0; got ", filters));
}

// Returns the window of the op. Throws InvalidArgumentError for sizes that are not positive and for an unknown padding.
template <typename Options>
ops::ConvolutionOptions CheckedWindow(const std::string& class_name, const WindowSize<Options>& kernel_size,
                                      const Options& options) {
  const RowsColumns size = InImage(kernel_size), strides = InImage(options.strides),
                    dilations = InImage(options.dilation_rate);
  CheckPositive(class_name, "kernel size", size);
  CheckPositive(class_name, "strides", strides);
  CheckPositive(class_name, "dilation rate", dilations);
  ops::ConvolutionOptions window;
  window.strides = {strides.rows, strides.columns};
  window.dilations = {dilations.rows, dilations.columns};
  if constexpr (std::is_same_v<Options, Conv1DOptions>) {
    if (options.padding == "causal") {
      window.padding = "EXPLICIT";
      window.paddings = {0, 0, (size.columns - 1) * dilations.columns, 0};
      return window;
    }
  }
  window.padding = OpPadding(options.padding);
  return window;
}

// Adds the bias, if there is one, and applies the activation to images. Returns a sequence if the layer is for
// sequences.
template <typename Options>
Output Finished(CallContext& ctx, const Options& options, Output x) {
  if (options.use_bias) x = ops::BiasAdd(x, ctx.weight("bias"));
  x = options.activation(x);
  return kOfSequences<Options> ? ops::Squeeze(x, {1}) : x;
}

template <typename Options>
WeightSpec BiasSpec(const Options& options, int64_t size) {
  return {.name = "bias",
          .shape = Shape{size},
          .initializer = options.bias_initializer,
          .regularizer = options.bias_regularizer};
}

// Returns the options that all convolutions have, then `more`.
template <typename Options>
ConfigValue::Object ConvolutionConfig(const WindowSize<Options>& size, const Options& options,
                                      ConfigValue::Object more) {
  ConfigValue::Object config = {{"kernel_size", SizeInFile(size)},
                                {"strides", SizeInFile(options.strides)},
                                {"padding", options.padding},
                                {"data_format", "channels_last"},
                                {"dilation_rate", SizeInFile(options.dilation_rate)},
                                {"activation", options.activation.Serialized()},
                                {"use_bias", options.use_bias},
                                {"bias_initializer", options.bias_initializer.Serialized()},
                                {"bias_regularizer", options.bias_regularizer.Serialized()},
                                {"activity_regularizer", nullptr},
                                {"bias_constraint", nullptr}};
  for (auto& option : more) config.push_back(std::move(option));
  return config;
}

// The reverse of ConvolutionConfig, without what differs between the layers.
template <typename Options>
Options ReadConvolution(ConfigReader& reader) {
  Options options;
  ReadWeighted(reader, options);
  Read(reader, "strides", options.strides);
  reader.Read("padding", options.padding);
  reader.OnlyDefault("data_format", "channels_last");
  Read(reader, "dilation_rate", options.dilation_rate);
  Read(reader, "activation", options.activation);
  reader.Read("use_bias", options.use_bias);
  Read(reader, "bias_initializer", options.bias_initializer);
  Read(reader, "bias_regularizer", options.bias_regularizer);
  return options;
}

}  // namespace cohort::keras
