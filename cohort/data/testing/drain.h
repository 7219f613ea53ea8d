// For tests: returns the elements of a dataset as numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/data/dataset.h"

namespace cohort::data {

// Returns all values of an int64 element. Components come one after another.
inline std::vector<int64_t> Values(const Element& element) {
  std::vector<int64_t> values;
  for (const Tensor& tensor : element) {
    for (const int64_t value : tensor.values<int64_t>()) values.push_back(value);
  }
  return values;
}

// Returns the values of the next elements, at most `limit` of them.
inline std::vector<std::vector<int64_t>> Drain(Iterator& iterator, int limit = 1000) {
  std::vector<std::vector<int64_t>> all;
  Element element;
  while (static_cast<int>(all.size()) < limit && iterator.Next(&element)) all.push_back(Values(element));
  return all;
}

inline std::vector<std::vector<int64_t>> Drain(const Dataset& dataset, int limit = 1000,
                                               const IteratorOptions& options = {}) {
  return Drain(*dataset.MakeIterator(options), limit);
}

// As Drain, for elements that are scalars.
inline std::vector<int64_t> Scalars(const Dataset& dataset, int limit = 1000, const IteratorOptions& options = {}) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& values : Drain(dataset, limit, options)) all.push_back(values.at(0));
  return all;
}

// The function x -> factor * x, for scalars.
inline HostMap Times(int64_t factor) {
  return [factor](const Element& element) -> Element {
    return {Tensor::Scalar(factor * element.at(0).scalar<int64_t>())};
  };
}
inline const ElementSpec kInt64Scalar{{DType::kInt64, Shape()}};

// A range without random access, like a source that can only be read in order.
inline Dataset Sequential(int64_t n) { return Dataset::Range(n).Map(Times(1), kInt64Scalar); }

}  // namespace cohort::data
