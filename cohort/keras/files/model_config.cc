// Converts layers to Keras's configuration and back. LayersWriter writes the steps of a LayerGraph, of a Sequential or
// of a functional model; a model inside a model is written in the same way. LayersReader makes the layers by their
// classes. For a functional model it then calls each layer as soon as its inputs exist.
#include "cohort/keras/files/model_config.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"
#include "cohort/keras/files/custom_layers.h"
#include "cohort/keras/files/mask_operations.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/layers/compound_layer.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_instance.h"

namespace cohort::keras {
namespace {

constexpr char kSequential[] = "Sequential";
constexpr char kFunctional[] = "Functional";
// Layers refer to the layers before them, and a chain of them is followed by recursion.
constexpr uint64_t kMostCalls = 4096;  // of layers in one model, without those of models inside of it
// A model inside a model is built again for each of its calls. Twenty models, each of which calls the next one twice,
// are a small file and a million layers.
constexpr uint64_t kMostSteps = uint64_t{1} << 14;

// ---- writing -----------------------------------------------------------------------------------------------------

ConfigValue Policy(const std::string& name) { return SerializedObject("keras", "DTypePolicy", {{"name", name}}); }

ConfigValue ShapesInFile(const std::vector<LayerInput>& inputs) {
  if (inputs.size() == 1) return ShapeInFile(inputs[0].shape);
  ConfigValue::List shapes;
  for (const LayerInput& input : inputs) shapes.push_back(ShapeInFile(input.shape));
  return shapes;
}

class LayersWriter {
 public:
  LayersWriter(const LayerGraph& layers, std::string dtype_policy)
      : layers_(layers), policy_(std::move(dtype_policy)), names_(NamesBesideMasks(layers, StepNames(layers))) {
    std::map<const Layer*, int64_t> uses;
    for (size_t i = 0; i < layers_.steps().size(); ++i) {
      const LayerGraph::LayerStep& step = layers_.steps()[i];
      use_.push_back(uses[&*step.layer]++);
      std::vector<LayerInput> inputs;
      if (i < layers_.inputs().size()) inputs.push_back(layers_.inputs()[i]);
      for (const LayerGraph::Value& input : step.inputs) {
        inputs.push_back(results_[input.step].at(static_cast<size_t>(input.index)));
      }
      results_.push_back(InferOutputs(*step.layer, inputs));
      inputs_.push_back(std::move(inputs));
    }
  }

  ConfigValue Whole(const std::string& name) const {
    ConfigValue::Object config = {{"name", name}, {"trainable", layers_.trainable()}};
    const bool chain = layers_.class_name() == kSequential;
    if (chain) config.emplace_back("dtype", Policy(policy_));
    ConfigValue::List layers;
    for (size_t i = 0; i < layers_.steps().size(); ++i) {
      if (use_[i] == 0) layers.push_back(chain ? LayerObject(i) : WithNodes(i));
    }
    config.emplace_back("layers", std::move(layers));
    if (chain) {
      config.emplace_back("build_input_shape", ShapeInFile(layers_.inputs()[0].shape));
    } else {
      ConfigValue::List inputs, outputs;
      for (size_t i = 0; i < layers_.inputs().size(); ++i) inputs.push_back(Place({i, 0}, false));
      for (const LayerGraph::Value& output : layers_.output_values()) outputs.push_back(Place(output, true));
      config.emplace_back("input_layers", OnlyOrAll(std::move(inputs)));
      config.emplace_back("output_layers", OnlyOrAll(std::move(outputs)));
    }
    ConfigValue whole =
        SerializedObject(chain ? "keras" : "keras.src.models.functional", layers_.class_name(), std::move(config));
    whole.Set("build_config", ConfigValue::Object{{"input_shape", ShapesInFile(layers_.inputs())}});
    return whole;
  }

 private:
  static ConfigValue OnlyOrAll(ConfigValue::List list) { return list.size() == 1 ? list[0] : ConfigValue(list); }

  // [layer, number of its use, result]. Keras counts the uses of a model inside a model from 1 among its outputs.
  ConfigValue Place(const LayerGraph::Value& value, bool is_output) const {
    const bool model = layers_.steps()[value.step].layer->class_name() == kFunctional;
    return ConfigValue::List{names_[value.step], use_[value.step] + (is_output && model ? 1 : 0), value.index};
  }

  ConfigValue LayerObject(size_t step) const {
    const Layer& layer = *layers_.steps()[step].layer;
    ConfigValue object = Described(layer, names_[step]);
    const bool without = layer.class_name() == "InputLayer" || dynamic_cast<const LayerGraph*>(&layer) != nullptr;
    if (!without) object.Set("build_config", BuildConfig(step));
    return object;
  }

  // Returns a layer's object without its build_config.
  ConfigValue Described(const Layer& layer, const std::string& name) const {
    if (const auto* inner = dynamic_cast<const LayerGraph*>(&layer)) return LayersWriter(*inner, policy_).Whole(name);
    ConfigValue::Object config = {{"name", name}};
    if (FilesSayTrainable(layer.class_name())) config.emplace_back("trainable", layer.trainable());
    if (!SaysOwnDtype(layer.class_name())) config.emplace_back("dtype", Policy(policy_));
    for (auto& option : layer.Config()) config.push_back(std::move(option));
    if (const auto* compound = dynamic_cast<const CompoundLayer*>(&layer)) {
      for (const CompoundLayer::Part& part : compound->Parts()) {
        if (!part.option.empty()) config.emplace_back(part.option, Described(*part.layer, part.name));
      }
    }
    if (IsKerasLayer(layer.class_name())) return SerializedLayer(layer.class_name(), std::move(config));
    return ConfigValue::Object{{"module", nullptr},
                               {"class_name", layer.class_name()},
                               {"config", std::move(config)},
                               {"registered_name", layer.class_name()}};
  }

  // Returns an object with a member for each argument of a call with these inputs: the input's value, or a list if the
  // argument has several. The members are called as the arguments, with `suffix`.
  static ConfigValue::Object ByArgument(const NamedArguments& named, const ConfigValue::List& values,
                                        const char* suffix) {
    const std::vector<std::string> names = named.ArgumentNames();
    ConfigValue::Object arguments;
    for (size_t i = 0; i < names.size() && i < values.size(); ++i) {
      const bool last = i + 1 == names.size() && values.size() > names.size();
      arguments.emplace_back(
          names[i] + suffix,
          last ? ConfigValue(ConfigValue::List(values.begin() + static_cast<std::ptrdiff_t>(i), values.end()))
               : values[i]);
    }
    return arguments;
  }

  ConfigValue BuildConfig(size_t step) const {
    std::vector<LayerInput> inputs = inputs_[step];
    const auto* named = dynamic_cast<const NamedArguments*>(&*layers_.steps()[step].layer);
    if (named != nullptr && named->IsPositional()) inputs.resize(1);
    if (named == nullptr || inputs.size() == 1 || named->ArgumentNames().size() == 1) {
      return ConfigValue::Object{{"input_shape", ShapesInFile(inputs)}};
    }
    ConfigValue::List shapes;
    for (const LayerInput& input : inputs) shapes.push_back(ShapeInFile(input.shape));
    return ConfigValue::Object{{"shapes_dict", ByArgument(*named, shapes, "_shape")}};
  }

  static ConfigValue CallObject(const Layer& layer, ConfigValue::List values) {
    const auto* named = dynamic_cast<const NamedArguments*>(&layer);
    if (named != nullptr && values.size() > 1 && !named->IsPositional()) {
      ConfigValue::Object arguments = ByArgument(*named, values, "");
      for (auto& option : named->CallOptions()) arguments.push_back(std::move(option));
      return ConfigValue::Object{{"args", ConfigValue::List{}}, {"kwargs", std::move(arguments)}};
    }
    const bool several = values.size() > 1 && named == nullptr;
    const bool listed = several || layer.class_name() == "Add" || layer.class_name() == "Concatenate";
    return ConfigValue::Object{{"args", listed ? ConfigValue::List{ConfigValue(std::move(values))} : std::move(values)},
                               {"kwargs", ConfigValue::Object{}}};
  }

  ConfigValue WithNodes(size_t first) const {
    ConfigValue object = LayerObject(first);
    const LayerRef& layer = layers_.steps()[first].layer;
    ConfigValue::List nodes;
    for (size_t i = first; i < layers_.steps().size(); ++i) {
      const LayerGraph::LayerStep& step = layers_.steps()[i];
      if (step.layer.ptr() != layer.ptr() || step.inputs.empty()) continue;
      ConfigValue::List values;
      for (const LayerGraph::Value& input : step.inputs) values.push_back(TensorObject(input));
      nodes.push_back(CallObject(*layer, std::move(values)));
    }
    object.Set("name", names_[first]);
    object.Set("inbound_nodes", std::move(nodes));
    return object;
  }

  ConfigValue TensorObject(const LayerGraph::Value& value) const {
    const LayerInput& spec = results_[value.step].at(static_cast<size_t>(value.index));
    const bool narrow = IsFloating(spec.dtype) && policy_ == "mixed_bfloat16" && value.step >= layers_.inputs().size();
    const DType dtype = narrow ? DType::kBfloat16 : spec.dtype;
    return ConfigValue::Object{{"class_name", "__keras_tensor__"},
                               {"config", ConfigValue::Object{{"shape", ShapeInFile(spec.shape)},
                                                              {"dtype", std::string(DTypeName(dtype))},
                                                              {"keras_history", Place(value, false)}}}};
  }

  const LayerGraph& layers_;
  const std::string policy_;
  const std::vector<std::string> names_;
  // For each step: the number of this use of its layer, from 0, and the specs of inputs and results.
  std::vector<int64_t> use_;
  std::vector<std::vector<LayerInput>> inputs_, results_;
};

// ---- reading -----------------------------------------------------------------------------------------------------

class LayersReader {
 public:
  explicit LayersReader(const std::map<std::string, LayerFactory>& custom_layers) : custom_layers_(custom_layers) {}

  LayersFromConfig Whole(const ConfigValue& value) {
    LayersFromConfig whole;
    whole.class_name = value.At("class_name").AsString();
    if (!IsModelClass(whole.class_name)) {
      throw InvalidArgumentError(StrCat("[keras/load_model] expected a Sequential or Functional model; got class '",
                                        whole.class_name, "'; make one in the program and call LoadWeights"));
    }
    const ConfigValue& config = value.At("config");
    whole.name = config.At("name").AsString();
    whole.trainable = IsTrainable(config);
    if (whole.class_name == kSequential) {
      CheckCalls(whole.name, config.At("layers").AsList().size());
      for (const ConfigValue& layer : config.At("layers").AsList()) {
        whole.items.push_back(MakeLayer(layer));
        Spend(whole.items.back());
      }
      const ConfigValue* shape = config.Find("build_input_shape");
      if (shape != nullptr && shape->is_list()) whole.build_shape = ShapeFromFile(*shape);
      return whole;
    }
    whole.class_name = kFunctional;
    ReadFunctional(config, whole);
    return whole;
  }

  std::string policy() const {
    if (policies_.empty()) return "float32";
    if (policies_.size() == 1) return *policies_.begin();
    if (policies_ == std::set<std::string>{"float32", "mixed_bfloat16"}) {
      LogWarning("keras", "the file has layers of float32 among those of mixed_bfloat16; all of them will be mixed");
      return "mixed_bfloat16";
    }
    throw UnimplementedError(StrCat("[keras/load_model] expected layers of one dtype policy; got ",
                                    StrJoin(std::vector<std::string>(policies_.begin(), policies_.end()), ", ")));
  }

 private:
  static void CheckCalls(const std::string& model, uint64_t calls) {
    if (calls <= kMostCalls) return;
    throw InvalidArgumentError(StrCat("[keras/load_model] expected at most ", kMostCalls, " calls of layers in model '",
                                      model, "'; got ", calls));
  }

  // Counts a call of a layer, with all layers inside of it.
  void Spend(const LayerRef& layer) {
    const auto inside = steps_inside_.find(&*layer);
    steps_ += inside == steps_inside_.end() ? 1 : inside->second;
    if (steps_ <= kMostSteps) return;
    throw InvalidArgumentError(StrCat("[keras/load_model] expected a model of at most ", kMostSteps,
                                      " layers, with those of models inside of it for each of their calls; got more"));
  }

  // A layer of a functional model with the values that it has given so far, use by use.
  struct Made {
    LayerRef layer;
    const ConfigValue::List* nodes;
    size_t done = 0;
    std::vector<std::vector<LayerTensor>> uses;
  };

  // A frozen layer is frozen again, whatever its class.
  LayerRef MakeLayer(const ConfigValue& value) {
    LayerRef layer = MakeAnyLayer(value);
    layer->Layer::SetTrainable(IsTrainable(value.At("config")));
    return layer;
  }

  static bool IsTrainable(const ConfigValue& config) {
    const ConfigValue* trainable = config.Find("trainable");
    return trainable == nullptr || trainable->is_null() || trainable->AsBool();
  }

  LayerRef MakeAnyLayer(const ConfigValue& value) {
    const std::string& class_name = value.At("class_name").AsString();
    const ConfigValue& config = value.At("config");
    const ConfigValue* name = config.Find("name");
    const auto custom = custom_layers_.find(class_name);
    const LayerFactory factory = custom != custom_layers_.end() ? custom->second : RegisteredLayer(class_name);
    try {
      if (factory) {
        ReadPolicy(config);
        return MadeByFactory(factory, class_name, config);
      }
      if (IsModelClass(class_name)) return AsLayer(Whole(value));
      if (IsKerasLayer(class_name)) {
        if (!SaysOwnDtype(class_name)) ReadPolicy(config);
        return MadeOfKeras(value);
      }
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(StrCat(error.what(), " (layer ", name != nullptr ? name->ToJson() : "", ")"));
    }
    std::vector<std::string> known = KerasLayerNames();
    for (const auto& [own, made] : custom_layers_) known.push_back(own);
    for (const std::string& own : RegisteredLayerNames()) known.push_back(own);
    throw InvalidArgumentError(StrCat("[keras/load_model] expected layers of known classes; got a ", class_name,
                                      " (layer ", name != nullptr ? name->ToJson() : "", ")",
                                      DidYouMean(class_name, known), "; known are ", StrJoin(known, ", "),
                                      "; name others by RegisterLayer or in LoadOptions::custom_layers"));
  }

  LayerRef MadeOfKeras(const ConfigValue& value) {
    LayerRef layer = DeserializeLayer(value, [this](const ConfigValue& part) { return MakeLayer(part); });
    const auto* compound = dynamic_cast<const CompoundLayer*>(&*layer);
    if (compound == nullptr) return layer;
    uint64_t inside = 1;
    for (const CompoundLayer::Part& part : compound->Parts()) {
      const auto found = steps_inside_.find(part.layer.get());
      if (found != steps_inside_.end()) inside += found->second;
    }
    steps_inside_.emplace(&*layer, inside);
    return layer;
  }

  // Throws InvalidArgumentError if the factory gives the layer another name: its weights are called by it.
  static LayerRef MadeByFactory(const LayerFactory& factory, const std::string& class_name, const ConfigValue& config) {
    LayerRef layer = factory(config);
    const ConfigValue* name = config.Find("name");
    if (name == nullptr || !name->is_string() || layer->name() == name->AsString()) return layer;
    if (!layer->name().empty()) {
      throw InvalidArgumentError(StrCat("[keras/load_model] expected the factory of custom layer ", class_name,
                                        " to make a layer called '", name->AsString(), "'; got one called '",
                                        layer->name(), "'; give it no name, or config.At(\"name\").AsString()"));
    }
    LayerNaming::Give(*layer, name->AsString());
    return layer;
  }

  LayerRef AsLayer(const LayersFromConfig& whole) {
    std::shared_ptr<const LayerGraph> graph = MakeGraph(whole);
    uint64_t inside = 0;
    for (const LayerGraph::LayerStep& step : graph->steps()) {
      const auto found = steps_inside_.find(&*step.layer);
      inside += found == steps_inside_.end() ? 1 : found->second;
    }
    steps_inside_.emplace(graph.get(), inside);
    return LayerRef(std::move(graph));
  }

  static std::shared_ptr<const LayerGraph> MakeGraph(const LayersFromConfig& whole) {
    if (whole.class_name == kFunctional) {
      return std::make_shared<const LayerGraph>(whole.class_name, whole.name, whole.inputs, whole.outputs);
    }
    if (whole.items.empty() || dynamic_cast<const InputLayer*>(whole.items[0].ptr().get()) == nullptr) {
      throw InvalidArgumentError(StrCat("[keras/load_model] expected model '", whole.name,
                                        "' inside a model to begin with an InputLayer; it does not"));
    }
    const LayerTensor input = InputOf(whole.items[0]);
    LayerTensor value = input;
    for (size_t i = 1; i < whole.items.size(); ++i) value = whole.items[i](value);
    return std::make_shared<const LayerGraph>(whole.class_name, whole.name, std::vector<LayerTensor>{input},
                                              std::vector<LayerTensor>{value});
  }

  static LayerTensor InputOf(const LayerRef& layer) {
    const auto& input = dynamic_cast<const InputLayer&>(*layer);
    return {std::make_shared<const LayerCall>(LayerCall{layer, {}}), 0, input.spec()};
  }

  void ReadPolicy(const ConfigValue& config) {
    const ConfigValue* dtype = config.Find("dtype");
    if (dtype == nullptr || dtype->is_null()) return;
    if (dtype->is_string()) {
      policies_.insert(dtype->AsString());
    } else {
      policies_.insert(dtype->At("config").At("name").AsString());
    }
  }

  void ReadFunctional(const ConfigValue& config, LayersFromConfig& whole) {
    std::vector<std::string> order;
    std::map<std::string, Made> made;
    const MaskOperations masks(config.At("layers").AsList());
    std::optional<MaskFlow> flow;
    if (HasMasks(config.At("layers").AsList())) flow.emplace();
    for (const ConfigValue& value : config.At("layers").AsList()) {
      if (MaskOperations::IsOperation(value)) continue;
      const std::string& name = MaskOperations::NameOf(value);
      Made layer = {MakeLayer(value), &value.At("inbound_nodes").AsList(), 0, {}};
      if (dynamic_cast<const InputLayer*>(layer.layer.ptr().get()) != nullptr) {
        layer.uses.push_back({InputOf(layer.layer)});
        if (flow) flow->Add(*layer.layer, {}, layer.uses.back());
      }
      if (!made.emplace(name, std::move(layer)).second) {
        throw InvalidArgumentError(StrCat("[keras/load_model] expected one layer of each name; got two '", name, "'"));
      }
      order.push_back(name);
    }
    uint64_t calls = 0;
    for (const auto& [name, layer] : made) calls += layer.nodes->size();
    CheckCalls(whole.name, std::max<uint64_t>(calls, order.size()));
    CallAll(order, made, masks, flow ? &*flow : nullptr);
    whole.inputs = Tensors(config.At("input_layers"), made, false);
    whole.outputs = Tensors(config.At("output_layers"), made, true);
  }

  // Calls all layers. Throws InvalidArgumentError if some do not follow from the inputs, or get other masks in the file
  // than here. `flow` may be null if no call has a mask.
  void CallAll(const std::vector<std::string>& order, std::map<std::string, Made>& made, const MaskOperations& masks,
               MaskFlow* flow) {
    // Repeats until nothing more can be called, because the list may use values before their layer.
    size_t waiting = 1;
    for (bool moved = true; moved && waiting > 0;) {
      moved = false;
      waiting = 0;
      for (const std::string& name : order) {
        Made& layer = made.at(name);
        while (layer.done < layer.nodes->size() && Call(name, layer, made)) {
          moved = true;
          if (layer.uses.back().empty()) continue;  // nothing can follow from it
          const std::vector<LayerTensor>& inputs = layer.uses.back()[0].call()->inputs;
          const ConfigValue* mask = MaskOf((*layer.nodes)[layer.done - 1]);
          if (mask != nullptr) CheckMasks(name, *layer.layer, *mask, inputs, masks, made, *flow);
          if (flow != nullptr) flow->Add(*layer.layer, inputs, layer.uses.back());
        }
        waiting += layer.nodes->size() - layer.done;
      }
    }
    if (waiting > 0) {
      throw InvalidArgumentError(
          StrCat("[keras/load_model] expected layers that follow from the inputs; ", waiting, " calls do not"));
    }
  }

  // Returns the mask that a call has as an argument, or null if it has none.
  static const ConfigValue* MaskOf(const ConfigValue& node) {
    const ConfigValue* mask = node.At("kwargs").Find("mask");
    return mask == nullptr || mask->is_null() ? nullptr : mask;
  }

  // Returns whether a call of one of the layers has a mask as an argument.
  static bool HasMasks(const ConfigValue::List& layers) {
    return std::any_of(layers.begin(), layers.end(), [](const ConfigValue& layer) {
      if (MaskOperations::IsOperation(layer)) return false;
      const ConfigValue::List& nodes = layer.At("inbound_nodes").AsList();
      return std::any_of(nodes.begin(), nodes.end(), [](const ConfigValue& node) { return MaskOf(node) != nullptr; });
    });
  }

  // Throws InvalidArgumentError unless a call of the layer uses the masks that its inputs carry. `mask` is the argument
  // in the file: a list has the masks of the first inputs, and null for an input without one; another value is the mask
  // of the first input.
  static void CheckMasks(const std::string& name, const Layer& layer, const ConfigValue& mask,
                         const std::vector<LayerTensor>& inputs, const MaskOperations& masks,
                         const std::map<std::string, Made>& made, const MaskFlow& flow) {
    const auto refuse = [&](const std::string& what) {
      throw InvalidArgumentError(
          StrCat("[keras/load_model] expected layers that use the masks of their inputs; layer '", name,
                 "' is called with ", what));
    };
    const auto* named = dynamic_cast<const NamedArguments*>(&layer);
    const std::vector<std::string> arguments = named == nullptr ? std::vector<std::string>() : named->ArgumentNames();
    if (inputs.size() > 1 && std::find(arguments.begin(), arguments.end(), "initial_state") != arguments.end()) {
      refuse("a mask beside its initial_state, which uses no mask here");
    }
    const ConfigValue::List of_inputs = mask.is_list() ? mask.AsList() : ConfigValue::List{mask};
    if (of_inputs.size() > inputs.size()) {
      refuse(StrCat("a list of ", of_inputs.size(), " masks for ", inputs.size(), " inputs"));
    }
    for (size_t i = 0; i < of_inputs.size(); ++i) {
      std::vector<LayerTensor> sources;
      const std::vector<const ConfigValue*> places = masks.Sources(name, of_inputs[i]);
      for (const ConfigValue* place : places) {
        if (const LayerTensor* source = Find(*place, made, false)) sources.push_back(*source);
      }
      if (sources.size() != places.size() || !flow.FollowsFrom(inputs[i], sources)) {
        refuse(StrCat("another mask than that of input ", i));
      }
    }
  }

  // Returns false if an argument does not exist yet.
  bool Call(const std::string& name, Made& layer, const std::map<std::string, Made>& made) {
    const ConfigValue& node = (*layer.nodes)[layer.done];
    std::vector<LayerTensor> inputs;
    for (const ConfigValue& argument : node.At("args").AsList()) {
      if (!AddArgument(argument, made, inputs)) return false;
    }
    std::set<std::string> known = {"mask"};
    // Arguments that change nothing if they are false. Keras writes training=False for each recurrent layer; and where
    // a program has called a layer with it, Fit calls the layer with True all the same, in the model and in a loaded
    // one.
    const std::set<std::string> unused_if_false = {"return_attention_scores", "training", "use_causal_mask"};
    if (const auto* named = dynamic_cast<const NamedArguments*>(&*layer.layer)) {
      for (const std::string& argument : named->ArgumentNames()) {
        const ConfigValue* value = node.At("kwargs").Find(argument);
        if (value != nullptr && !AddArgument(*value, made, inputs)) return false;
        known.insert(argument);
      }
      for (const auto& [option, value] : named->CallOptions()) known.insert(option);
    }
    for (const auto& [keyword, value] : node.At("kwargs").AsObject()) {
      const bool none = value.is_null() || (value.is_list() && value.AsList().empty()) ||
                        (unused_if_false.count(keyword) > 0 && value.ToJson() == "false");
      if (none || known.count(keyword) > 0) continue;
      throw InvalidArgumentError(
          StrCat("[keras/load_model] expected calls without arguments beside the inputs; layer '", name,
                 "' is called with ", keyword, "=", value.ToJson()));
    }
    Spend(layer.layer);
    try {
      layer.uses.push_back(layer.layer.Apply(inputs));
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(StrCat(error.what(), " (layer '", name, "')"));
    }
    ++layer.done;
    return true;
  }

  static bool AddArgument(const ConfigValue& argument, const std::map<std::string, Made>& made,
                          std::vector<LayerTensor>& inputs) {
    if (argument.is_null()) return true;  // an argument that was not given
    if (argument.is_list()) {
      for (const ConfigValue& item : argument.AsList()) {
        if (!AddArgument(item, made, inputs)) return false;
      }
      return true;
    }
    if (!argument.is_object() || argument.At("class_name").AsString() != "__keras_tensor__") {
      throw InvalidArgumentError(
          StrCat("[keras/load_model] expected results of layers as arguments; got ", argument.ToJson()));
    }
    const LayerTensor* tensor = Find(argument.At("config").At("keras_history"), made, false);
    if (tensor == nullptr) return false;
    inputs.push_back(*tensor);
    return true;
  }

  static const LayerTensor* Find(const ConfigValue& place, const std::map<std::string, Made>& made, bool is_output) {
    const ConfigValue::List& parts = place.AsList();
    if (parts.size() != 3) {
      throw InvalidArgumentError(StrCat("[keras/load_model] expected [layer, use, result]; got ", place.ToJson()));
    }
    const auto found = made.find(parts[0].AsString());
    if (found == made.end()) {
      throw InvalidArgumentError(StrCat("[keras/load_model] expected a layer '", parts[0].AsString(),
                                        "' that others refer to; there is none (operations, such as keras.ops.add, are "
                                        "no layers)"));
    }
    const Made& layer = found->second;
    const bool model = layer.layer->class_name() == kFunctional;
    const int64_t use = parts[1].AsInt() - (is_output && model ? 1 : 0), index = parts[2].AsInt();
    if (use < 0 || use >= static_cast<int64_t>(layer.uses.size())) return nullptr;
    const std::vector<LayerTensor>& results = layer.uses[static_cast<size_t>(use)];
    if (index >= 0 && index < static_cast<int64_t>(results.size())) return &results[static_cast<size_t>(index)];
    throw InvalidArgumentError(StrCat("[keras/load_model] expected result ", index, " of layer '", parts[0].AsString(),
                                      "'; it has ", results.size()));
  }

  static std::vector<LayerTensor> Tensors(const ConfigValue& places, const std::map<std::string, Made>& made,
                                          bool are_outputs) {
    const ConfigValue::List& list = places.AsList();
    std::vector<LayerTensor> tensors;
    const bool one = !list.empty() && list[0].is_string();
    for (const ConfigValue& place : one ? ConfigValue::List{places} : list) {
      const LayerTensor* tensor = Find(place, made, are_outputs);
      if (tensor == nullptr) {
        throw InvalidArgumentError(
            StrCat("[keras/load_model] expected a result of a layer; there is none at ", place.ToJson()));
      }
      tensors.push_back(*tensor);
    }
    return tensors;
  }

  const std::map<std::string, LayerFactory>& custom_layers_;
  std::set<std::string> policies_;
  std::map<const Layer*, uint64_t> steps_inside_;  // of the models inside the model
  uint64_t steps_ = 0;                             // counted by Spend
};

}  // namespace

std::vector<std::string> StepNames(const LayerGraph& layers) {
  Graph scratch;
  WeightStore store(scratch);
  LayerInstance naming(store, LayerInstance::Options{});
  std::vector<std::string> names;
  for (const LayerGraph::LayerStep& step : layers.steps()) names.push_back(naming.NameOf(*step.layer, ""));
  return names;
}

ConfigValue SerializedLayers(const LayerGraph& layers, const std::string& name, const std::string& dtype_policy) {
  return LayersWriter(layers, dtype_policy).Whole(name);
}

bool IsModelClass(const std::string& class_name) {
  return class_name == kSequential || class_name == kFunctional || class_name == "Model";
}

LayersFromConfig DeserializeLayers(const ConfigValue& value, const std::map<std::string, LayerFactory>& custom_layers) {
  LayersReader reader(custom_layers);
  LayersFromConfig layers = reader.Whole(value);
  layers.dtype_policy = reader.policy();
  return layers;
}

}  // namespace cohort::keras
