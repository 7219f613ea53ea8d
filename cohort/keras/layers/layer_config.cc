#include "cohort/keras/layers/layer_config.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/keras/files/serialization.h"

namespace cohort::keras {
namespace {

const ConfigMakers<LayerRef>& AllLayerMakers() {
  static const ConfigMakers<LayerRef> makers("layer", [] {
    std::vector<LayerMaker> all;
    for (const auto& some :
         {CoreLayerMakers, ConvolutionLayerMakers, TransposedLayerMakers, PoolingLayerMakers, ShapeLayerMakers,
          ResizingLayerMakers, NoiseLayerMakers, MergingLayerMakers, ActivationLayerMakers, NormalizationLayerMakers,
          LookupLayerMakers, TextLayerMakers, PreprocessingLayerMakers, ImageResizingLayerMakers,
          ImageAugmentationLayerMakers, RecommenderLayerMakers, RecurrentLayerMakers, AttentionLayerMakers}) {
      for (LayerMaker& maker : some()) all.push_back(std::move(maker));
    }
    return all;
  }());
  return makers;
}

const NameTable<WrapperMaker::second_type>& AllWrapperMakers() {
  static const NameTable<WrapperMaker::second_type> makers("layer", WrapperLayerMakers());
  return makers;
}

// Returns `value` with the argument use_causal_mask of its calls among the options, which is where Cohort's attention
// has it. Throws InvalidArgumentError if the calls differ in it.
ConfigValue WithCallOptions(const ConfigValue& value) {
  const ConfigValue* calls = value.Find("inbound_nodes");
  if (!value.At("class_name").AsString().ends_with("Attention") || calls == nullptr) return value;
  int64_t causal = 0;
  for (const ConfigValue& call : calls->AsList()) {
    const ConfigValue* arguments = call.Find("kwargs");
    const ConfigValue* mask = arguments != nullptr ? arguments->Find("use_causal_mask") : nullptr;
    causal += mask != nullptr && !mask->is_null() && mask->AsBool() ? 1 : 0;
  }
  if (causal == 0) return value;
  if (causal != static_cast<int64_t>(calls->AsList().size())) {
    throw InvalidArgumentError(
        "[keras/serialization] expected a layer that is always called with the same use_causal_mask; the calls differ");
  }
  ConfigValue result = value;
  ConfigValue config = value.At("config");
  config.Set("use_causal_mask", true);
  result.Set("config", std::move(config));
  return result;
}

// Returns `value` with the "axis" of a normalization as -1 if it is the last one of the shape that the layer was built
// for.
ConfigValue WithLastAxis(const ConfigValue& value) {
  const ConfigValue* axis = value.At("config").Find("axis");
  if (axis == nullptr || value.At("class_name").AsString() == "Concatenate") return value;
  const ConfigValue* only = axis;
  if (axis->is_list() && axis->AsList().size() == 1) only = &axis->AsList()[0];
  if (only->is_list() || only->is_null()) return value;
  const ConfigValue* built = value.Find("build_config");
  const ConfigValue* shape = built != nullptr ? built->Find("input_shape") : nullptr;
  const bool last = only->AsInt() == -1 || (shape != nullptr && shape->is_list() &&
                                            only->AsInt() == static_cast<int64_t>(shape->AsList().size()) - 1);
  if (!last) return value;
  ConfigValue result = value;
  ConfigValue config = value.At("config");
  config.Set("axis", -1);
  result.Set("config", std::move(config));
  return result;
}

}  // namespace

void Read(ConfigReader& reader, const char* name, Initializer& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = DeserializeInitializer(value); });
}
void Read(ConfigReader& reader, const char* name, Regularizer& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = DeserializeRegularizer(value); });
}
void Read(ConfigReader& reader, const char* name, ActivationFunction& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = DeserializeActivation(value); });
}
void Read(ConfigReader& reader, const char* name, RowsColumns& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = RowsColumnsOf(value); });
}
void Read(ConfigReader& reader, const char* name, int64_t& to) {
  reader.ReadBy(name, [&](const ConfigValue& value) { to = StepsOf(value); });
}

ConfigValue SerializedLayer(const std::string& class_name, ConfigValue::Object config) {
  const std::vector<LayerMaker> recommenders = RecommenderLayerMakers();
  const bool known = std::none_of(recommenders.begin(), recommenders.end(),
                                  [&](const LayerMaker& maker) { return maker.first == class_name; });
  if (known) return SerializedObject("keras.layers", class_name, std::move(config));
  return ConfigValue::Object{{"module", "keras_rs.layers"},
                             {"class_name", class_name},
                             {"config", std::move(config)},
                             {"registered_name", StrCat("keras_rs>", class_name)}};
}

bool SaysOwnDtype(const std::string& class_name) {
  return class_name == "InputLayer" || class_name == "Hashing" || class_name == "HashedCrossing" ||
         class_name == "Discretization";
}

bool FilesSayTrainable(const std::string& class_name) {
  // The constructors of some classes of Keras take no `trainable`.
  return class_name != "InputLayer" && class_name != "Discretization" && class_name != "SpatialDropout1D" &&
         class_name != "SpatialDropout2D";
}

RowsColumns RowsColumnsOf(const ConfigValue& value) {
  if (!value.is_list()) return value.AsInt();
  if (value.AsList().size() == 2) return {value.AsList()[0].AsInt(), value.AsList()[1].AsInt()};
  throw InvalidArgumentError(StrCat("[keras/serialization] expected two numbers; got ", value.ToJson()));
}

int64_t StepsOf(const ConfigValue& value) {
  if (!value.is_list()) return value.AsInt();
  if (value.AsList().size() == 1) return value.AsList()[0].AsInt();
  throw InvalidArgumentError(StrCat("[keras/serialization] expected one number; got ", value.ToJson()));
}

int64_t ReadSeed(ConfigReader& reader) {
  int64_t seed = 0;
  reader.ReadBy("seed", [&](const ConfigValue& value) {
    // A generator's state is an object.
    if (!value.is_object()) seed = value.AsInt();
  });
  return seed;
}

std::string ReadName(ConfigReader& reader) {
  std::string name;
  reader.Read("name", name);
  reader.Ignore("dtype");
  reader.Ignore("trainable");  // of layers without weights
  reader.OnlyDefault("activity_regularizer", nullptr);
  return name;
}

LayerRef DeserializeLayer(const ConfigValue& value, const std::function<LayerRef(const ConfigValue&)>& inner) {
  const auto* wrapper = AllWrapperMakers().TryFind(value.At("class_name").AsString());
  if (wrapper == nullptr) return MakeFromConfig("layer", AllLayerMakers(), WithCallOptions(WithLastAxis(value)));
  ConfigReader reader("layer", value);
  LayerRef layer = (*wrapper)(
      reader, inner ? inner : [](const ConfigValue& part) { return DeserializeLayer(part); });
  reader.Finish();
  return layer;
}
bool IsKerasLayer(const std::string& class_name) {
  return AllLayerMakers().TryFind(class_name) != nullptr || AllWrapperMakers().TryFind(class_name) != nullptr;
}
std::vector<std::string> KerasLayerNames() {
  std::vector<std::string> all = AllLayerMakers().names();
  for (std::string& name : AllWrapperMakers().names()) all.push_back(std::move(name));
  return all;
}

}  // namespace cohort::keras
