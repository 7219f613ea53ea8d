// ConfigValue: a value of a configuration, which Keras's files store as JSON.
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

// A null, a truth value, a number, a text, a list, or an object (names with values, in order). A copy shares nothing
// with its original. Several threads may read a value at the same time, if none changes it.
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
  ConfigValue(const std::optional<double>& value) {  // an empty optional becomes null
    if (value) value_ = *value;
  }
  ConfigValue(const std::optional<int64_t>& value) {
    if (value) value_ = *value;
  }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Return the value as this type. Throw InvalidArgumentError that shows the value if it has another type. AsDouble
  // accepts whole numbers, and AsInt accepts numbers without a fraction.
  bool AsBool() const;
  int64_t AsInt() const;
  double AsDouble() const;
  const std::string& AsString() const;
  const List& AsList() const;
  const Object& AsObject() const;

  // Returns the value called `name` of an object. Returns null if there is none or if this is not an object.
  const ConfigValue* Find(std::string_view name) const;
  // As Find, but if Find would return null, throws InvalidArgumentError that lists all names.
  const ConfigValue& At(std::string_view name) const;
  // Replaces or appends the value called `name`. Throws InvalidArgumentError if this is not an object.
  void Set(std::string_view name, ConfigValue value);

  // Returns JSON on one line. NaN and infinities are written as by Python's json module (NaN, Infinity).
  std::string ToJson() const;
  // Throws InvalidArgumentError with the position of the error if `text` is not JSON. Throws it also if `text` has more
  // than 256 levels, more than 2^20 values, or more than 1024 names in one object.
  static ConfigValue FromJson(std::string_view text);

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> value_;
};

// Returns Keras's form of an object in a file: {"module", "class_name", "config", "registered_name": null}.
COHORT_EXPORT ConfigValue SerializedObject(const char* module, const std::string& class_name,
                                           ConfigValue::Object config);

// Convert between a shape and its form in files: a list of numbers, with null for an unknown dimension. ShapeFromFile
// throws InvalidArgumentError for another value.
COHORT_EXPORT ConfigValue ShapeInFile(const Shape& shape);
COHORT_EXPORT Shape ShapeFromFile(const ConfigValue& value);

}  // namespace cohort::keras
