// ConfigValue: its typed access, and its conversion from and to JSON. Parsing is done by the JSON library, with limits
// on the depth and on the number of values (Budget). Writing is our own (JsonText), because numbers must look like
// Python's.
#include "cohort/keras/files/config.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A small file may contain very many values, and the values of an object are looked up one after another. A layer has
// about 20 options, and a large model about 100,000 values.
constexpr int kDeepest = 256;
constexpr size_t kMostValues = size_t{1} << 20;
constexpr size_t kMostNames = 1024;  // in one object

// Counts the values while the JSON library reads them, because it works on values in values by recursion afterwards.
class Budget {
 public:
  bool Take(int depth, OrderedJson::parse_event_t event) {
    if (depth > kDeepest) Fail(kDeepest, "levels");
    switch (event) {
      case OrderedJson::parse_event_t::object_start: names_.push_back(0); break;
      case OrderedJson::parse_event_t::object_end: names_.pop_back(); break;
      case OrderedJson::parse_event_t::key:
        if (++names_.back() > kMostNames) Fail(kMostNames, "names in an object");
        return true;
      case OrderedJson::parse_event_t::array_end: return true;
      default: break;
    }
    if (++values_ > kMostValues) Fail(kMostValues, "values");
    return true;
  }

 private:
  [[noreturn]] static void Fail(size_t most, const char* what) {
    throw InvalidArgumentError(StrCat("[keras/config] expected at most ", most, " ", what, " of JSON; got more"));
  }

  std::vector<size_t> names_;  // of each object that is open
  size_t values_ = 0;
};

[[noreturn]] void Fail(const char* expected, const ConfigValue& got) {
  std::string text = got.ToJson();
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  throw InvalidArgumentError(StrCat("[keras/config] expected ", expected, "; got ", text));
}

ConfigValue FromParsed(const OrderedJson& json) {
  switch (json.type()) {
    case OrderedJson::value_t::boolean: return json.get<bool>();
    case OrderedJson::value_t::number_integer: return json.get<int64_t>();
    case OrderedJson::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return json.get<double>();
      return json.get<int64_t>();
    case OrderedJson::value_t::number_float: return json.get<double>();
    case OrderedJson::value_t::string: return json.get<std::string>();
    case OrderedJson::value_t::array: {
      ConfigValue::List list;
      for (const OrderedJson& item : json) list.push_back(FromParsed(item));
      return list;
    }
    case OrderedJson::value_t::object: {
      ConfigValue::Object object;
      for (const auto& [name, item] : json.items()) object.emplace_back(name, FromParsed(item));
      return object;
    }
    default: return nullptr;
  }
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return OrderedJson(value).dump();
}

// Replaces bytes that are not UTF-8, so that a file is always valid JSON.
std::string Quoted(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

struct JsonText {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return NumberText(value); }
  std::string operator()(const std::string& value) const { return Quoted(value); }
  std::string operator()(const ConfigValue::List& value) const {
    std::string text = "[";
    for (const ConfigValue& item : value) text += (text.size() > 1 ? ", " : "") + item.ToJson();
    return text + "]";
  }
  std::string operator()(const ConfigValue::Object& value) const {
    std::string text = "{";
    for (const auto& [name, item] : value) {
      text += (text.size() > 1 ? ", " : "") + Quoted(name) + ": " + item.ToJson();
    }
    return text + "}";
  }
};

}  // namespace

bool ConfigValue::AsBool() const {
  if (const bool* value = std::get_if<bool>(&value_)) return *value;
  Fail("true or false", *this);
}

int64_t ConfigValue::AsInt() const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
  const double* number = std::get_if<double>(&value_);
  if (number != nullptr && *number == std::floor(*number) && std::abs(*number) < 0x1p62) {
    return static_cast<int64_t>(*number);
  }
  Fail("a whole number", *this);
}

double ConfigValue::AsDouble() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  Fail("a number", *this);
}

const std::string& ConfigValue::AsString() const {
  if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
  Fail("a text", *this);
}

const ConfigValue::List& ConfigValue::AsList() const {
  if (const List* value = std::get_if<List>(&value_)) return *value;
  Fail("a list", *this);
}

const ConfigValue::Object& ConfigValue::AsObject() const {
  if (const Object* value = std::get_if<Object>(&value_)) return *value;
  Fail("an object", *this);
}

const ConfigValue* ConfigValue::Find(std::string_view name) const {
  const Object* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  for (const auto& [key, value] : *object) {
    if (key == name) return &value;
  }
  return nullptr;
}

const ConfigValue& ConfigValue::At(std::string_view name) const {
  if (const ConfigValue* found = Find(name)) return *found;
  std::vector<std::string> known;
  for (const auto& [key, value] : AsObject()) known.push_back(key);
  throw InvalidArgumentError(StrCat("[keras/config] expected a value '", name, "'; there are ", StrJoin(known, ", ")));
}

void ConfigValue::Set(std::string_view name, ConfigValue value) {
  AsObject();
  Object& object = std::get<Object>(value_);
  for (auto& [key, old] : object) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  object.emplace_back(name, std::move(value));
}

std::string ConfigValue::ToJson() const { return std::visit(JsonText(), value_); }

ConfigValue ConfigValue::FromJson(std::string_view text) {
  Budget budget;
  try {
    return FromParsed(OrderedJson::parse(text, [&budget](int depth, OrderedJson::parse_event_t event,
                                                         const OrderedJson&) { return budget.Take(depth, event); }));
  } catch (const OrderedJson::exception& error) {
    throw InvalidArgumentError(StrCat("[keras/config] expected JSON; ", error.what()));
  }
}

ConfigValue SerializedObject(const char* module, const std::string& class_name, ConfigValue::Object config) {
  return ConfigValue::Object{
      {"module", module}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

ConfigValue ShapeInFile(const Shape& shape) {
  ConfigValue::List dims;
  for (const int64_t dim : shape.dims()) {
    if (dim < 0) {
      dims.emplace_back();
    } else {
      dims.emplace_back(dim);
    }
  }
  return dims;
}

Shape ShapeFromFile(const ConfigValue& value) {
  Shape shape;
  for (const ConfigValue& dim : value.AsList()) shape.AddDim(dim.is_null() ? Shape::kUnknownDim : dim.AsInt());
  return shape;
}

}  // namespace cohort::keras
