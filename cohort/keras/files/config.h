// Configurations of models and of their parts as values: what Keras's files say in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/shape.h"

namespace cohort::keras {

// null, a truth value, a number, a text, a list, or an object (names with values, in order). Copies are deep.
class COHORT_EXPORT ConfigValue {
 public:
  using List = std::vector<ConfigValue>;
  using Object = std::vector<std::pair<std::string, ConfigValue>>;

  ConfigValue() = default;  // null
  ConfigValue(std::nullptr_t) {}
  ConfigValue(bool value) : value_(value) {}
  ConfigValue(int value) : value_(int64_t{value}) {}
  ConfigValue(int64_t value) : value_(value) {}
  ConfigValue(double value) : value_(value) {}
  ConfigValue(const char* value) : value_(std::string(value)) {}
  ConfigValue(std::string value) : value_(std::move(value)) {}
  ConfigValue(List value) : value_(std::move(value)) {}
  ConfigValue(Object value) : value_(std::move(value)) {}
  ConfigValue(const std::optional<double>& value) {  // none: null
    if (value) value_ = *value;
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value as this type; throws InvalidArgumentError that shows the value otherwise. Whole numbers are numbers too,
  // and numbers without a fraction are whole.
  bool AsBool() const;
  int64_t AsInt() const;
  double AsDouble() const;
  const std::string& AsString() const;
  const List& AsList() const;
  const Object& AsObject() const;

  // Of an object: the value called `name`; null pointer where there is none or this is no object.
  const ConfigValue* Find(std::string_view name) const;
  // Throws InvalidArgumentError that lists the names there are.
  const ConfigValue& At(std::string_view name) const;
  // Replaces the value or appends it. Throws InvalidArgumentError for what is no object.
  void Set(std::string_view name, ConfigValue value);

  // JSON on one line. NaN and infinities are written as Python's json module writes them (NaN, Infinity).
  std::string ToJson() const;
  // Throws InvalidArgumentError with the position of the mistake.
  static ConfigValue FromJson(std::string_view text);

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> value_;
};

// Keras's form of an object in a file: {"module", "class_name", "config", "registered_name": null}.
COHORT_EXPORT ConfigValue SerializedObject(const char* module, const std::string& class_name,
                                           ConfigValue::Object config);

// A shape as files hold it: a list, null for what is not known. The reverse throws InvalidArgumentError.
COHORT_EXPORT ConfigValue ShapeInFile(const Shape& shape);
COHORT_EXPORT Shape ShapeFromFile(const ConfigValue& value);

}  // namespace cohort::keras
