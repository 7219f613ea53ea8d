// AttrValue: the value of an attribute of a node. It can hold what TensorFlow's AttrValue holds, except lists of
// tensors and lists of functions. Of a function it holds only the name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cohort/core/dtype.h"
#include "cohort/core/export.h"
#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"

namespace cohort {

// The name of a function in the graph's library.
struct COHORT_EXPORT FunctionName {
  std::string name;
  friend bool operator==(const FunctionName&, const FunctionName&) = default;
  friend std::ostream& operator<<(std::ostream& out, const FunctionName& function) { return out << function.name; }
};

// The value of one attribute. A value type. An empty AttrValue holds nothing.
class COHORT_EXPORT AttrValue {
 public:
  using Value = std::variant<std::monostate, int64_t, float, bool, std::string, DType, Shape, Tensor, FunctionName,
                             std::vector<int64_t>, std::vector<float>, std::vector<bool>, std::vector<std::string>,
                             std::vector<DType>, std::vector<Shape>>;

  AttrValue() = default;
  AttrValue(int value) : value_(static_cast<int64_t>(value)) {}
  AttrValue(int64_t value) : value_(value) {}
  AttrValue(float value) : value_(value) {}
  AttrValue(double value) : value_(static_cast<float>(value)) {}
  AttrValue(bool value) : value_(value) {}
  AttrValue(const char* value) : value_(std::string(value)) {}
  AttrValue(std::string value) : value_(std::move(value)) {}
  AttrValue(DType value) : value_(value) {}
  AttrValue(Shape value) : value_(std::move(value)) {}
  AttrValue(Tensor value) : value_(std::move(value)) {}
  AttrValue(FunctionName value) : value_(std::move(value)) {}
  AttrValue(std::vector<int64_t> value) : value_(std::move(value)) {}
  AttrValue(std::vector<float> value) : value_(std::move(value)) {}
  AttrValue(std::vector<bool> value) : value_(std::move(value)) {}
  AttrValue(std::vector<std::string> value) : value_(std::move(value)) {}
  AttrValue(std::vector<DType> value) : value_(std::move(value)) {}
  AttrValue(std::vector<Shape> value) : value_(std::move(value)) {}

  // Returns the value, or nullptr if the attribute is empty or of another type. The pointer is valid until this
  // AttrValue changes or ends.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  const Value& value() const { return value_; }
  bool empty() const { return value_.index() == 0; }
  // Returns the value as text for error messages: "[1, 2]", "float32", "true".
  std::string ToString() const;
  // Returns true if type and value are equal. Tensors are compared bit by bit.
  friend bool operator==(const AttrValue& a, const AttrValue& b);

 private:
  Value value_;
};
COHORT_EXPORT bool operator==(const AttrValue& a, const AttrValue& b);

using AttrMap = std::map<std::string, AttrValue, std::less<>>;

}  // namespace cohort
