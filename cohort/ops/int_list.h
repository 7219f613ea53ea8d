// IntList: integers that an op takes as an input, such as axes, shapes and permutations. The integers are known when
// the graph is built, or are computed in the step.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/ops/constant.h"

namespace cohort::ops {

// A list of integers as an argument of an op function. Converts implicitly from a list such as {0, 1}, from one integer
// (a list with one element), from a std::vector<int64_t>, or from an int32 or int64 vector of the graph.
class COHORT_EXPORT IntList {
 public:
  IntList(std::initializer_list<int64_t> values) : value_(std::vector<int64_t>(values)) {}
  IntList(std::vector<int64_t> values) : value_(std::move(values)) {}
  IntList(Output value) : value_(value) {}
  // Converts from a variable: uses its value.
  template <typename T>
  requires(!std::same_as<T, Output> && std::is_convertible_v<const T&, Output>) IntList(const T& value)
      : value_(static_cast<Output>(value)) {}
  template <std::integral T>
  requires NumberType<T> &&(!std::same_as<T, bool>)IntList(T value)
      : value_(std::vector<int64_t>{static_cast<int64_t>(value)}) {}

  // Returns the integers as a value of the graph. If they are known, adds a constant.
  Output In(Graph& graph) const {
    const Output* output = std::get_if<Output>(&value_);
    return output != nullptr ? *output
                             : IntVector(graph, std::get<std::vector<int64_t>>(value_), NodeName("", CallSite()));
  }

 private:
  std::variant<std::vector<int64_t>, Output> value_;
};

}  // namespace cohort::ops
