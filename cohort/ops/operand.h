// Operand: a value of the graph, or a number of C++. The functions of ops/ take Operands as the inputs of an op.
//
//   ops::Maximum(x, 0);    2 * x + 1;    x > 0.5;    counter.AssignAdd(1);
//
// A number becomes a constant of the dtype that the op or its other inputs require:
// - In an integer dtype it has to be a whole number in the dtype's range: 2.0 is accepted. For 0.5, or 300 as uint8,
//   the function throws InvalidArgumentError that names the number, the dtype, the op and the other input.
// - In a floating dtype it is rounded to the nearest value, as in TensorFlow: 0.1, or 16777217 as float32. For a finite
//   number beyond the dtype's range, the function throws InvalidArgumentError. 0.1f is a float: as float64 it is
//   0.10000000149.
// - In the dtype bool it has to be true or false. No other dtype accepts true and false.
// If neither decides the dtype, the C++ type does: float gives float32, double float64, uint8_t uint8. Other integer
// types give int32 if int32 holds all values of the type, else int64.
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

// The types of C++ that are accepted as numbers: all arithmetic types except character types and long double.
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
  Operand(Output value, CallSite site = CallSite::Here())
      : value_(value), site_(site) {}  // NOLINT(google-explicit-constructor)
  template <typename T>
  requires(!std::same_as<T, Output> && std::is_convertible_v<const T&, Output>)
      Operand(const T& value, CallSite site = CallSite::Here())  // NOLINT(google-explicit-constructor)
      : value_(static_cast<Output>(value)), site_(site) {}
  template <NumberType T>
  Operand(T number, CallSite site = CallSite::Here())  // NOLINT(google-explicit-constructor)
      : value_(Number(number)), site_(site) {}

  bool is_number() const { return std::holds_alternative<Number>(value_); }
  // Requires: is_number().
  const Number& number() const { return std::get<Number>(value_); }
  // Requires: !is_number().
  const Output& output() const { return std::get<Output>(value_); }
  // Returns the dtype of a value of the graph, or kInvalid for a number and for an empty Output.
  DType dtype() const { return is_number() || !output().valid() ? DType::kInvalid : output().dtype(); }
  // Returns the source line that made the operand: the line of the call or of the operator with this argument.
  const CallSite& site() const { return site_; }
  // Returns output(), or for a number a new constant of `dtype` in `graph`. Throws InvalidArgumentError if the dtype
  // cannot hold the number. `whose` is for the message: what has this dtype, such as "variable 'w'".
  Output In(Graph& graph, DType dtype, const std::string& whose) const;

 private:
  std::variant<Output, Number> value_;
  CallSite site_;
};

// Begins a node of the op `op`, called `name`, whose first inputs are `args`. The node is in the graph of the values
// among `args`; numbers become constants. If an input of the op is a list of tensors, the caller gives it and all later
// inputs to the returned builder. Throws InvalidArgumentError for an empty Output, for a number that the dtype cannot
// hold, and if all `args` are numbers. Throws NotFoundError if there is no such op.
COHORT_EXPORT NodeBuilder Op(const std::string& op, const std::vector<Operand>& args, const NodeName& name = "");

}  // namespace cohort::ops
