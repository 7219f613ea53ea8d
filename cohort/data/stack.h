// Elements stacked to a batch and cut apart again.
#pragma once

#include <vector>

#include "cohort/data/element.h"

namespace cohort::data {

// Component i of the result is [elements.size(), shape of component i]. Throws InvalidArgumentError where components
// have different shapes. There has to be one element at least.
Element Stack(const std::vector<Element>& elements);

// Batches one after another: component i is [sum of rows, ...]. Throws as Stack. There has to be one batch at least.
Element ConcatenateRows(const std::vector<Element>& batches);

// Components [n, ...] of the batch cut to rows [begin, end), sharing the bytes.
Element SliceRows(const Element& batch, int64_t begin, int64_t end);
// Row `index` of each component, without the axis of rows.
Element Row(const Element& batch, int64_t index);
// The first dimension that all components have. Throws InvalidArgumentError where there is none or they differ.
int64_t NumRows(const Element& batch);
// Spec of a row of batches of `spec`. Throws InvalidArgumentError for a component that is a scalar.
ElementSpec RowSpec(const ElementSpec& spec);
// Spec of batches with `rows` rows (-1: unknown) of elements of `spec`.
ElementSpec BatchSpec(const ElementSpec& spec, int64_t rows);

}  // namespace cohort::data
