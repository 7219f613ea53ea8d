// IntList: integers that an op takes as an input - axes, shapes, permutations - either known now or computed
// in the step.
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

// Made implicitly of {0, 1}, of one integer (a list of one), of a std::vector<int64_t>, or of an int32 or int64 vector
// in the graph.
class COHORT_EXPORT IntList {
 public:
  IntList(std::initializer_list<int64_t> values) : value_(std::vector<int64_t>(values)) {}
  IntList(std::vector<int64_t> values) : value_(std::move(values)) {}
  IntList(Output value) : value_(value) {}
  // Of a variable: its value.
  template <typename T>
  requires(!std::same_as<T, Output> && std::is_convertible_v<const T&, Output>) IntList(const T& value)
      : value_(static_cast<Output>(value)) {}
  template <std::integral T>
  requires NumberType<T> &&(!std::same_as<T, bool>)IntList(T value)
      : value_(std::vector<int64_t>{static_cast<int64_t>(value)}) {}

  // The value in the graph: a constant where the integers are known.
  Output In(Graph& graph) const {
    const Output* output = std::get_if<Output>(&value_);
    return output != nullptr ? *output : IntVector(graph, std::get<std::vector<int64_t>>(value_));
  }

 private:
  std::variant<std::vector<int64_t>, Output> value_;
};

}  // namespace cohort::ops
