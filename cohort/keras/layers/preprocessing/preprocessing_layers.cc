// Hashing, HashedCrossing, Discretization, CategoryEncoding and Normalization of preprocessing_layers.h.
#include "cohort/keras/layers/preprocessing/preprocessing_layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/preprocessing/category_encoding.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

class HashingLayer final : public Layer {
 public:
  HashingLayer(int64_t num_bins, const HashingOptions& options)
      : Layer("Hashing", options.name), num_bins_(num_bins), options_(options) {
    CheckOutputMode(options.output_mode, "hashing");
    if (num_bins < 1) throw InvalidArgumentError(StrCat("[keras/hashing] expected num_bins >= 1; got ", num_bins));
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    const Output x = inputs.at(0);
    if (x.dtype() != DType::kString && !IsInteger(x.dtype())) {
      throw InvalidArgumentError(StrCat("[keras/hashing] expected strings or integers; got ", x.dtype()));
    }
    return {Encoded(Hashes(x), num_bins_, options_.output_mode)};
  }
  DType InputDType() const override {
    return std::holds_alternative<int64_t>(options_.mask_value) ? DType::kInt64 : DType::kString;
  }
  ConfigValue::Object Config() const override {
    ConfigValue mask, salt;
    if (const auto* number = std::get_if<int64_t>(&options_.mask_value)) mask = *number;
    if (const auto* text = std::get_if<std::string>(&options_.mask_value)) mask = *text;
    if (options_.salt) salt = ConfigValue::List{(*options_.salt)[0], (*options_.salt)[1]};
    return {{"dtype", options_.output_mode == "int" ? "int64" : "float32"},
            {"num_bins", num_bins_},
            {"salt", salt},
            {"mask_value", mask},
            {"output_mode", options_.output_mode},
            {"sparse", false}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    HashingOptions options = {.name = ReadName(reader)};
    reader.Read("output_mode", options.output_mode);
    reader.ReadBy("mask_value", [&](const ConfigValue& value) {
      if (value.is_string()) {
        options.mask_value = value.AsString();
      } else {
        options.mask_value = value.AsInt();
      }
    });
    reader.ReadBy("salt", [&](const ConfigValue& value) {
      const ConfigValue::List& key = value.AsList();
      if (key.size() != 2) throw InvalidArgumentError(StrCat("expected a salt of two numbers; got ", value.ToJson()));
      options.salt = {key[0].AsInt(), key[1].AsInt()};
    });
    reader.OnlyDefault("sparse", false);
    return Hashing(reader.Required("num_bins").AsInt(), options);
  }

 private:
  Output Hashes(const Output& x) const {
    // With a mask value, the other values share the bins from 1 on.
    const bool masks = !std::holds_alternative<std::monostate>(options_.mask_value) && num_bins_ > 1;
    const int64_t bins = masks ? num_bins_ - 1 : num_bins_;
    const Output text = x.dtype() == DType::kString ? x : ops::AsString(x);
    const Output hash = options_.salt ? ops::StringToHashBucketStrong(text, bins, *options_.salt)
                                      : ops::StringToHashBucketFast(text, bins);
    if (!masks) return hash;
    return ops::SelectV2(ops::Equal(x, MaskValue(x)), ops::Const(x.graph(), int64_t{0}), ops::Add(hash, 1));
  }
  Output MaskValue(const Output& x) const {
    const auto* number = std::get_if<int64_t>(&options_.mask_value);
    const auto* text = std::get_if<std::string>(&options_.mask_value);
    if ((x.dtype() == DType::kString) != (text != nullptr)) {
      throw InvalidArgumentError(StrCat("[keras/hashing] expected a mask_value of the input's dtype, ", x.dtype(),
                                        "; got ", text != nullptr ? "a string" : "an integer"));
    }
    return text != nullptr ? ops::Const(x.graph(), *text) : ops::ScalarLike(x, *number);
  }

  const int64_t num_bins_;
  const HashingOptions options_;
};

class HashedCrossingLayer final : public Layer {
 public:
  HashedCrossingLayer(int64_t num_bins, const HashedCrossingOptions& options)
      : Layer("HashedCrossing", options.name), num_bins_(num_bins), output_mode_(options.output_mode) {
    if (num_bins < 1) Fail(StrCat("num_bins >= 1; got ", num_bins));
    if (output_mode_ != "int" && output_mode_ != "one_hot") {
      Fail(StrCat("output_mode \"int\" or \"one_hot\"; got \"", output_mode_, "\""));
    }
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    if (inputs.size() < 2) Fail(StrCat("at least two inputs; got ", inputs.size()));
    const Shape& first = inputs[0].shape();
    std::vector<Output> columns;
    for (const Output& x : inputs) {
      const Shape& shape = x.shape();
      if (x.dtype() != DType::kString && !IsInteger(x.dtype())) Fail(StrCat("strings or integers; got ", x.dtype()));
      const bool fits = shape.has_rank() && (shape.rank() == 1 || (shape.rank() == 2 && shape.dim(1) == 1));
      if (!fits || shape.rank() != first.rank()) {
        Fail(StrCat("inputs that are all [batch] or all [batch, 1]; got shapes ", first, " and ", shape));
      }
      const Output column = shape.rank() == 1 ? ops::ExpandDims(x, 1) : x;
      columns.push_back(x.dtype() == DType::kString ? column : ops::Cast(column, DType::kInt64));
    }
    const Output hashes = ops::CrossHashed(columns, num_bins_).values;  // one for each example
    const Output shaped = first.rank() == 1 ? hashes : ops::Reshape(hashes, {-1, 1});
    return {Encoded(shaped, num_bins_, output_mode_)};
  }
  DType InputDType() const override { return DType::kString; }
  ConfigValue::Object Config() const override {
    return {{"dtype", output_mode_ == "int" ? "int64" : "float32"},
            {"num_bins", num_bins_},
            {"output_mode", output_mode_},
            {"sparse", false}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    HashedCrossingOptions options = {.name = ReadName(reader)};
    reader.Read("output_mode", options.output_mode);
    reader.OnlyDefault("sparse", false);
    return HashedCrossing(reader.Required("num_bins").AsInt(), options);
  }

 private:
  [[noreturn]] static void Fail(const std::string& expected) {
    throw InvalidArgumentError(StrCat("[keras/hashed_crossing] expected ", expected));
  }

  const int64_t num_bins_;
  const std::string output_mode_;
};

class DiscretizationLayer final : public Layer {
 public:
  DiscretizationLayer(std::vector<double> boundaries, const DiscretizationOptions& options)
      : Layer("Discretization", options.name),
        boundaries_(boundaries.begin(), boundaries.end()),
        in_file_(std::move(boundaries)),
        output_mode_(options.output_mode) {
    CheckOutputMode(output_mode_, "discretization");
    const auto is_nan = [](float boundary) { return std::isnan(boundary); };
    if (!std::is_sorted(boundaries_.begin(), boundaries_.end()) ||
        std::any_of(boundaries_.begin(), boundaries_.end(), is_nan)) {
      throw InvalidArgumentError("[keras/discretization] expected bin_boundaries in ascending order");
    }
  }
  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    Output x = inputs.at(0);
    if (x.dtype() == DType::kUint8 || x.dtype() == DType::kBfloat16) x = ops::Cast(x, DType::kFloat32);
    return {Encoded(ops::Bucketize(x, boundaries_), static_cast<int64_t>(boundaries_.size()) + 1, output_mode_)};
  }
  ConfigValue::Object Config() const override {
    ConfigValue::List boundaries;
    for (const double boundary : in_file_) boundaries.emplace_back(boundary);
    return {{"dtype", "float32"},          {"bin_boundaries", std::move(boundaries)},
            {"num_bins", nullptr},         {"epsilon", 0.01},
            {"output_mode", output_mode_}, {"sparse", false}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    DiscretizationOptions options = {.name = ReadName(reader)};
    reader.Read("output_mode", options.output_mode);
    reader.OnlyDefault("sparse", false);
    reader.Ignore("num_bins");  // of adapt(), which has chosen the boundaries
    reader.Ignore("epsilon");
    std::vector<double> boundaries;
    for (const ConfigValue& boundary : reader.Required("bin_boundaries").AsList()) {
      boundaries.push_back(boundary.AsDouble());
    }
    return Discretization(std::move(boundaries), options);
  }

 private:
  const std::vector<float> boundaries_;
  const std::vector<double> in_file_;
  const std::string output_mode_;
};

class CategoryEncodingLayer final : public Layer {
 public:
  CategoryEncodingLayer(int64_t num_tokens, const CategoryEncodingOptions& options)
      : Layer("CategoryEncoding", options.name), num_tokens_(num_tokens), output_mode_(options.output_mode) {
    CheckOutputMode(output_mode_, "category_encoding", /*allows_int=*/false);
    if (num_tokens < 1 || num_tokens > kMostDepth) {
      throw InvalidArgumentError(
          StrCat("[keras/category_encoding] expected num_tokens in [1, ", kMostDepth, "]; got ", num_tokens));
    }
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    Output x = ops::Cast(inputs.at(0), DType::kInt64);
    const Output least = ops::Min(x), largest = ops::Max(x);
    const Output in_range = ops::LogicalAnd(ops::GreaterEqual(least, 0), ops::Less(largest, num_tokens_));
    const std::string message =
        StrCat("[keras/category_encoding] expected integers in [0, ", num_tokens_, "); the least and the largest are");
    const ControlDependencies after(ctx.graph(),
                                    {ops::Assert(in_range, {ops::Const(ctx.graph(), message), least, largest})});
    x = ops::Identity(x);
    return {Encoded(x, num_tokens_, output_mode_)};
  }
  DType InputDType() const override { return DType::kInt64; }
  ConfigValue::Object Config() const override { return {{"num_tokens", num_tokens_}, {"output_mode", output_mode_}}; }
  static LayerRef FromConfig(ConfigReader& reader) {
    CategoryEncodingOptions options = {.name = ReadName(reader)};
    reader.Read("output_mode", options.output_mode);
    reader.OnlyDefault("sparse", false);
    return CategoryEncoding(reader.Required("num_tokens").AsInt(), options);
  }

 private:
  const int64_t num_tokens_;
  const std::string output_mode_;
};

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

ConfigValue InFile(const NumberOrList& numbers) {
  if (!numbers.is_list()) return numbers.values()[0];
  ConfigValue::List list;
  for (const double value : numbers.values()) list.emplace_back(value);
  return list;
}

NumberOrList FromFile(const ConfigValue& value) {
  if (!value.is_list()) return value.AsDouble();
  std::vector<double> values;
  for (const ConfigValue& item : value.AsList()) values.push_back(item.AsDouble());
  return values;
}

class NormalizationLayer final : public Layer {
 public:
  explicit NormalizationLayer(const NormalizationOptions& options)
      : Layer("Normalization", options.name), options_(options) {
    if (options.mean.has_value() != options.variance.has_value()) Fail("both mean and variance, or neither; got one");
    if (!options.mean) return;
    const NumberOrList &mean = *options.mean, &variance = *options.variance;
    if (mean.is_list() != variance.is_list() || mean.values().size() != variance.values().size()) {
      Fail(StrCat("as many means as variances; got ", mean.values().size(), " and ", variance.values().size()));
    }
    for (const double value : variance.values()) {
      if (!(value >= 0)) Fail(StrCat("variances that are not negative; got ", value));
    }
  }
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const LayerInput& input = OnlyInput(inputs);
    const int rank = input.shape.rank();
    if (options_.mean && !options_.mean->is_list()) return {};
    if (rank < 2) Fail(StrCat("an input [batch, ..., features]; got shape ", input.shape));
    const int64_t features = KnownDim(input, -1);
    if (!options_.mean) {
      const auto weight = [](const char* name, const Shape& shape, const char* initializer, DType dtype) {
        return WeightSpec{.name = name, .shape = shape, .dtype = dtype, .initializer = initializer, .trainable = false};
      };
      return {weight("mean", Shape{features}, "zeros", DType::kFloat32),
              weight("variance", Shape{features}, "ones", DType::kFloat32),
              weight("count", Shape{}, "zeros", DType::kInt64)};
    }
    const auto count = static_cast<int64_t>(options_.mean->values().size());
    if (features != count)
      Fail(StrCat("an input [batch, ..., ", count, "] for ", count, " means; got shape ", input.shape));
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    Output x = inputs.at(0);
    if (!IsFloating(x.dtype())) x = ops::Cast(x, DType::kFloat32);
    x = ctx.Computed(x);
    Output mean, scale;
    if (options_.mean) {
      std::vector<double> deviations;
      for (const double variance : options_.variance->values()) {
        deviations.push_back(std::max(std::sqrt(variance), kEpsilon));
      }
      mean = Numbers(x, options_.mean->values());
      scale = Numbers(x, deviations);
    } else {
      mean = ctx.weight("mean");
      scale = ctx.Computed(ops::Maximum(ops::Sqrt(ctx.value("variance")), kEpsilon));
    }
    return {options_.invert ? ops::Add(mean, ops::Mul(x, scale)) : ops::Div(ops::Sub(x, mean), scale)};
  }
  bool supports_masking() const override { return true; }
  ConfigValue::Object Config() const override {
    const bool one = options_.mean && !options_.mean->is_list();
    return {{"axis", one ? ConfigValue() : ConfigValue(-1)},
            {"invert", options_.invert},
            {"mean", options_.mean ? InFile(*options_.mean) : ConfigValue()},
            {"variance", options_.variance ? InFile(*options_.variance) : ConfigValue()}};
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    NormalizationOptions options = {.name = ReadName(reader)};
    reader.Read("invert", options.invert);
    reader.ReadBy("mean", [&](const ConfigValue& value) { options.mean = FromFile(value); });
    reader.ReadBy("variance", [&](const ConfigValue& value) { options.variance = FromFile(value); });
    reader.ReadBy("axis", [&](const ConfigValue& axis) {
      const bool none = axis.is_list() && axis.AsList().empty() && options.mean;
      if (none || (!axis.is_list() && axis.AsInt() == -1)) return;
      throw InvalidArgumentError(
          StrCat("[keras/serialization] expected means of the last axis, or one for all; got axis ", axis.ToJson()));
    });
    return Normalization(options);
  }

 private:
  [[noreturn]] static void Fail(const std::string& expected) {
    throw InvalidArgumentError(StrCat("[keras/normalization] expected ", expected));
  }
  static Output Numbers(const Output& x, const std::vector<double>& values) {
    if (values.size() == 1) return ops::ScalarLike(x, values[0]);
    const std::vector<float> narrow(values.begin(), values.end());
    const Output all = ops::Const(x.graph(), narrow);
    return x.dtype() == DType::kFloat32 ? all : ops::Cast(all, x.dtype());
  }

  const NormalizationOptions options_;
};

}  // namespace

LayerRef Hashing(int64_t num_bins, const HashingOptions& options) { return MakeLayer<HashingLayer>(num_bins, options); }
LayerRef HashedCrossing(int64_t num_bins, const HashedCrossingOptions& options) {
  return MakeLayer<HashedCrossingLayer>(num_bins, options);
}
LayerRef Discretization(std::vector<double> bin_boundaries, const DiscretizationOptions& options) {
  return MakeLayer<DiscretizationLayer>(std::move(bin_boundaries), options);
}
LayerRef CategoryEncoding(int64_t num_tokens, const CategoryEncodingOptions& options) {
  return MakeLayer<CategoryEncodingLayer>(num_tokens, options);
}
LayerRef Normalization(const NormalizationOptions& options) {
  return MakeLayer<NormalizationLayer>(options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> PreprocessingLayerMakers() {
  return {{"Hashing", HashingLayer::FromConfig},
          {"HashedCrossing", HashedCrossingLayer::FromConfig},
          {"Discretization", DiscretizationLayer::FromConfig},
          {"CategoryEncoding", CategoryEncodingLayer::FromConfig},
          {"Normalization", NormalizationLayer::FromConfig}};
}

}  // namespace cohort::keras
