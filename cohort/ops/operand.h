// Operand: what the functions of ops/ take wherever an op has an input - a value of the graph, or a number of C++.
//
//   ops::Maximum(x, 0);    2 * x + 1;    x > 0.5;    counter.AssignAdd(1);
//
// A number becomes a constant of the dtype that the op's other inputs ask for:
// - In an integer dtype it has to be a whole number in the dtype's range: 2.0 is accepted; 0.5, or 300 as uint8, is an
//   InvalidArgumentError that names the number, the dtype, the op and the other input.
// - In a floating dtype it is rounded to the nearest value, as TensorFlow does: 0.1, or 16777217 as float32. A finite
//   number beyond the dtype's range is an InvalidArgumentError. 0.1f is a float: as float64 it is 0.10000000149.
// - bool takes true and false alone, and no other dtype takes those.
// If no other input says the dtype, it is that of the C++ type: float is float32, double float64, an integer int32 if
// its type fits into that, uint8 for uint8_t, else int64.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// The types of C++ that count as numbers. Character types and long double do not.
template <typename T>
concept NumberType =
    std::is_arithmetic_v<T> && !std::same_as<T, long double> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

// A number, and the dtype of its C++ type.
class COHORT_EXPORT Number {
 public:
  template <NumberType T>
  Number(T value) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::same_as<T, bool>) {
      value_ = value;
      dtype_ = DType::kBool;
    } else if constexpr (std::floating_point<T>) {
      value_ = static_cast<double>(value);
      dtype_ = sizeof(T) == sizeof(float) ? DType::kFloat32 : DType::kFloat64;
    } else if constexpr (std::signed_integral<T>) {
      value_ = static_cast<int64_t>(value);
      dtype_ = sizeof(T) <= sizeof(int32_t) ? DType::kInt32 : DType::kInt64;
    } else {
      value_ = static_cast<uint64_t>(value);
      dtype_ = sizeof(T) == 1 ? DType::kUint8 : sizeof(T) < sizeof(int32_t) ? DType::kInt32 : DType::kInt64;
    }
  }

  DType dtype() const { return dtype_; }
  // Returns the number as a scalar of `dtype`, by the rules above, or nullopt if the dtype cannot hold it.
  std::optional<Tensor> As(DType dtype) const;
  std::string ToString() const;

 private:
  std::variant<bool, int64_t, uint64_t, double> value_;
  DType dtype_;
};

// Converts implicitly from an Output, from types that convert to Output (such as Variable: its value), or from a
// number.
class COHORT_EXPORT Operand {
 public:
  Operand(Output value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  template <typename T>
  requires(!std::same_as<T, Output> && std::is_convertible_v<const T&, Output>)
      Operand(const T& value)  // NOLINT(google-explicit-constructor)
      : value_(static_cast<Output>(value)) {}
  template <NumberType T>
  Operand(T number) : value_(Number(number)) {}  // NOLINT(google-explicit-constructor)

  bool is_number() const { return std::holds_alternative<Number>(value_); }
  // Requires: is_number().
  const Number& number() const { return std::get<Number>(value_); }
  // Requires: !is_number().
  const Output& output() const { return std::get<Output>(value_); }
  // Returns the dtype of a value of the graph, or kInvalid for a number and for an empty Output.
  DType dtype() const { return is_number() || !output().valid() ? DType::kInvalid : output().dtype(); }
  // Returns the value in `graph`. A number becomes a constant of `dtype`, which is the dtype of `whose`. Throws
  // InvalidArgumentError if the dtype cannot hold it.
  Output In(Graph& graph, DType dtype, const std::string& whose) const;

 private:
  std::variant<Output, Number> value_;
};

// Begins a node of `op` with `args` as its first inputs, in the graph of the values among them. Numbers become
// constants. If the op has a list among its inputs, add it and the inputs after it to the result. Throws
// InvalidArgumentError for an empty Output, for a number that the dtype cannot hold, and if all args are numbers.
// Throws NotFoundError if there is no such op.
COHORT_EXPORT NodeBuilder Op(const std::string& op, const std::vector<Operand>& args);

}  // namespace cohort::ops
