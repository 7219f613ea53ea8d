#include "cohort/keras/files/mask_operations.h"

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

bool IsTensor(const ConfigValue& argument) {
  const ConfigValue* class_name = argument.is_object() ? argument.Find("class_name") : nullptr;
  return class_name != nullptr && class_name->is_string() && class_name->AsString() == "__keras_tensor__";
}

const ConfigValue& PlaceOf(const ConfigValue& tensor) { return tensor.At("config").At("keras_history"); }

[[noreturn]] void Fail(const std::string& layer, const std::string& got) {
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
  if (place.empty()) Fail(layer, "is no result of a layer");
  const std::string& name = place[0].AsString();
  if (Has(name)) {
    names->insert(name);
  } else {
    Fail(layer, StrCat("is a result of layer '", name, "'"));
  }
}

void MaskOperations::CheckComparison(const std::string& layer, const ConfigValue& operation) const {
  for (const ConfigValue& node : operation.At("inbound_nodes").AsList()) {
    const ConfigValue::List& args = node.At("args").AsList();
    const bool compares = args.size() == 2 && IsTensor(args[0]) && !IsTensor(args[1]);
    if (compares && sources_.count({PlaceOf(args[0]).ToJson(), args[1].AsDouble()}) > 0) continue;
    Fail(layer, StrCat("is made by an operation NotEqual of ", ConfigValue(args).ToJson(),
                       ", which no Embedding and no Masking makes"));
  }
}

void MaskOperations::Check(const std::string& layer, const ConfigValue& mask) const {
  static const std::set<std::string> of_masks = {"Any", "Concatenate", "ConvertToTensor", "ExpandDims", "LogicalOr"};
  // Their arguments are the values of which they have the shape.
  static const std::set<std::string> of_shapes = {"OnesLike", "ZerosLike"};
  std::set<std::string> waiting, seen;
  AddOperations(layer, mask, &waiting);
  while (!waiting.empty()) {
    const std::string name = *waiting.begin();
    waiting.erase(waiting.begin());
    if (!seen.insert(name).second) continue;
    const ConfigValue& operation = *operations_.at(name);
    const std::string& class_name = operation.At("class_name").AsString();
    if (class_name == "NotEqual") {
      CheckComparison(layer, operation);
    } else if (of_masks.count(class_name) > 0) {
      for (const ConfigValue& node : operation.At("inbound_nodes").AsList()) {
        AddOperations(layer, node.At("args"), &waiting);
      }
    } else if (of_shapes.count(class_name) == 0) {
      Fail(layer, StrCat("is made by an operation ", class_name));
    }
  }
}

}  // namespace cohort::keras
