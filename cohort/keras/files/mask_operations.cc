#include "cohort/keras/files/mask_operations.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {
namespace {

bool IsTensor(const ConfigValue& argument) {
  const ConfigValue* class_name = argument.is_object() ? argument.Find("class_name") : nullptr;
  return class_name != nullptr && class_name->is_string() && class_name->AsString() == "__keras_tensor__";
}

const ConfigValue& PlaceOf(const ConfigValue& tensor) { return tensor.At("config").At("keras_history"); }

bool MakesMask(const Layer& layer) {
  if (layer.class_name() != "Embedding") return layer.class_name() == "Masking";
  const ConfigValue::Object config = layer.Config();
  return std::any_of(config.begin(), config.end(),
                     [](const auto& option) { return option.first == "mask_zero" && option.second.AsBool(); });
}

[[noreturn]] void RefuseMask(const std::string& layer, const std::string& got) {
  throw InvalidArgumentError(
      StrCat("[keras/load_model] expected layers with the masks that follow from Embedding and "
             "Masking; layer '",
             layer, "' is called with a mask that ", got));
}

}  // namespace

bool MaskOperations::IsOperation(const ConfigValue& layer) {
  const ConfigValue* module = layer.Find("module");
  return module != nullptr && module->is_string() && module->AsString().starts_with("keras.src.ops.");
}

const std::string& MaskOperations::NameOf(const ConfigValue& layer) {
  const ConfigValue* outer = layer.Find("name");
  return (outer != nullptr ? *outer : layer.At("config").At("name")).AsString();
}

MaskOperations::MaskOperations(const ConfigValue::List& layers) {
  for (const ConfigValue& layer : layers) {
    if (IsOperation(layer)) {
      operations_.emplace(NameOf(layer), &layer);
      continue;
    }
    const std::string& class_name = layer.At("class_name").AsString();
    const ConfigValue* number = layer.At("config").Find("mask_value");
    if (class_name != "Embedding" && (class_name != "Masking" || number == nullptr)) continue;
    for (const ConfigValue& node : layer.At("inbound_nodes").AsList()) {
      for (const ConfigValue& argument : node.At("args").AsList()) {
        if (!IsTensor(argument)) continue;
        sources_.emplace(PlaceOf(argument).ToJson(), class_name == "Masking" ? number->AsDouble() : 0.0);
      }
    }
  }
}

void MaskOperations::AddOperations(const std::string& layer, const ConfigValue& argument,
                                   std::set<std::string>* names) const {
  if (argument.is_list()) {
    for (const ConfigValue& item : argument.AsList()) AddOperations(layer, item, names);
  }
  if (!IsTensor(argument)) return;
  const ConfigValue::List& place = PlaceOf(argument).AsList();
  if (place.empty()) RefuseMask(layer, "is no result of a layer");
  const std::string& name = place[0].AsString();
  if (Has(name)) {
    names->insert(name);
  } else {
    RefuseMask(layer, StrCat("is a result of layer '", name, "'"));
  }
}

void MaskOperations::AddSources(const std::string& layer, const ConfigValue& operation,
                                std::vector<const ConfigValue*>* to) const {
  for (const ConfigValue& node : operation.At("inbound_nodes").AsList()) {
    const ConfigValue::List& args = node.At("args").AsList();
    const bool compares = args.size() == 2 && IsTensor(args[0]) && !IsTensor(args[1]);
    if (compares && sources_.count({PlaceOf(args[0]).ToJson(), args[1].AsDouble()}) > 0) {
      to->push_back(&PlaceOf(args[0]));
      continue;
    }
    RefuseMask(layer, StrCat("is made by an operation NotEqual of ", ConfigValue(args).ToJson(),
                             ", which no Embedding and no Masking makes"));
  }
}

std::vector<const ConfigValue*> MaskOperations::Sources(const std::string& layer, const ConfigValue& mask) const {
  static const std::set<std::string> of_masks = {"Any", "Concatenate", "ConvertToTensor", "ExpandDims", "LogicalOr"};
  // Their arguments are the values of which they have the shape.
  static const std::set<std::string> of_shapes = {"OnesLike", "ZerosLike"};
  std::vector<const ConfigValue*> sources;
  std::set<std::string> waiting, seen;
  AddOperations(layer, mask, &waiting);
  while (!waiting.empty()) {
    const std::string name = *waiting.begin();
    waiting.erase(waiting.begin());
    if (!seen.insert(name).second) continue;
    const ConfigValue& operation = *operations_.at(name);
    const std::string& class_name = operation.At("class_name").AsString();
    if (class_name == "NotEqual") {
      AddSources(layer, operation, &sources);
    } else if (of_masks.count(class_name) > 0) {
      for (const ConfigValue& node : operation.At("inbound_nodes").AsList()) {
        AddOperations(layer, node.At("args"), &waiting);
      }
    } else if (of_shapes.count(class_name) == 0) {
      RefuseMask(layer, StrCat("is made by an operation ", class_name));
    }
  }
  return sources;
}

void MaskFlow::Add(const Layer& layer, const std::vector<LayerTensor>& inputs,
                   const std::vector<LayerTensor>& results) {
  std::vector<Output> values;
  for (const LayerTensor& input : inputs) values.push_back(values_.at(KeyOf(input)));
  if (inputs.empty()) values.push_back(ops::Placeholder(graph_, results.at(0).dtype(), results[0].shape()));
  const std::vector<Output> outputs = layers_.Add(layer, layers_.NameOf(layer, ""), values);
  for (size_t i = 0; i < results.size(); ++i) values_[KeyOf(results[i])] = outputs.at(i);
}

bool MaskFlow::FollowsFrom(const LayerTensor& value, const std::vector<LayerTensor>& sources) const {
  using Place = std::pair<const Node*, int>;
  std::set<Place> expected, found, seen;
  for (const LayerTensor& source : sources) {
    const Output& output = values_.at(KeyOf(source));
    expected.insert({output.node, output.index});
  }
  std::vector<Output> waiting;
  const Output mask = layers_.MaskOf(values_.at(KeyOf(value)));
  if (mask.valid()) waiting.push_back(mask);
  while (!waiting.empty()) {
    const Output next = waiting.back();
    waiting.pop_back();
    if (!seen.insert({next.node, next.index}).second) continue;
    if (next.node->op_name() == "NotEqual") {
      found.insert({next.node->input(0).node, next.node->input(0).index});
    } else if (next.node->op_name() != "ZerosLike") {  // which has the shape of its input alone
      for (const Output& input : next.node->inputs()) waiting.push_back(input);
    }
  }
  return found == expected;
}

std::vector<std::string> NamesBesideMasks(const LayerGraph& layers, std::vector<std::string> names) {
  const auto& steps = layers.steps();
  if (std::none_of(steps.begin(), steps.end(), [](const auto& step) { return MakesMask(*step.layer); })) return names;
  const std::set<std::string> taken(names.begin(), names.end());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].layer->class_name() != "Concatenate" || !steps[i].layer->name().empty()) continue;
    do names[i] += "_layer";
    while (taken.count(names[i]) > 0);
  }
  return names;
}

}  // namespace cohort::keras
