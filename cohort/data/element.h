// Element: what a dataset yields, a list of tensors. ElementSpec: the dtypes and, as far as they are known, the shapes
// of every element of a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::data {

using Element = std::vector<Tensor>;

struct COHORT_EXPORT TensorSpec {
  DType dtype = DType::kInvalid;
  Shape shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};
using ElementSpec = std::vector<TensorSpec>;

// Counts of elements that are not numbers (TensorFlow's values).
inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;

COHORT_EXPORT ElementSpec SpecOf(const Element& element);
// "(float32[?,3], int64[])".
COHORT_EXPORT std::string ToString(const ElementSpec& spec);
// Whether every element of `spec` has the dtypes of `required` and fits its shapes as far as both are known.
COHORT_EXPORT bool IsCompatible(const ElementSpec& spec, const ElementSpec& required);
// Throws InvalidArgumentError that shows both where `element` has other dtypes than `spec` or does not fit its shapes.
COHORT_EXPORT void CheckElement(const Element& element, const ElementSpec& spec);
// A batch of no examples: zero rows of each component. Throws InvalidArgumentError where the rest of a shape is not
// known; `caller` ("[keras/fit]") begins its message.
COHORT_EXPORT Element WithoutRows(const ElementSpec& spec, const std::string& caller);

}  // namespace cohort::data
