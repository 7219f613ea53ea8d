// Element: a list of tensors, which a dataset yields. ElementSpec: the dtypes, and the known parts of the shapes, of
// every element of a dataset. A tensor of an element is called a component.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::data {

using Element = std::vector<Tensor>;

// The dtype and the shape of one component. Dimensions that are not known are -1 in the shape.
struct COHORT_EXPORT TensorSpec {
  DType dtype = DType::kInvalid;
  Shape shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};
using ElementSpec = std::vector<TensorSpec>;

// Special values of Dataset::Cardinality(). They are TensorFlow's.
inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;

COHORT_EXPORT ElementSpec SpecOf(const Element& element);
// Returns for example "(float32[?,3], int64[])".
COHORT_EXPORT std::string ToString(const ElementSpec& spec);
// Returns a short text for error messages, for example "(\"a.png\", int32[] [3])". Of long strings and tensors it shows
// only the beginning.
COHORT_EXPORT std::string Description(const Element& element);
// Returns true if `spec` has the dtypes of `required`, and its shapes are equal to those of `required` in all
// dimensions that both know.
COHORT_EXPORT bool IsCompatible(const ElementSpec& spec, const ElementSpec& required);
// Throws InvalidArgumentError that shows both specs if `element` does not have the dtypes and shapes of `spec`.
COHORT_EXPORT void CheckElement(const Element& element, const ElementSpec& spec);
// Returns a batch without examples: each component has 0 rows. Throws InvalidArgumentError if a dimension other than
// the first is not known; the error's message begins with `caller` ("[keras/fit]").
COHORT_EXPORT Element WithoutRows(const ElementSpec& spec, const std::string& caller);

}  // namespace cohort::data
