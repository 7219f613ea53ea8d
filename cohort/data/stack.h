// Joins elements to batches, and cuts batches apart.
#pragma once

#include <vector>

#include "cohort/data/element.h"

namespace cohort::data {

// Makes one batch of elements: component i has shape [elements.size(), shape of component i]. Throws
// InvalidArgumentError if the shapes of a component differ. Requires: there is at least one element.
Element Stack(const std::vector<Element>& elements);

// Joins batches, one after another: component i has shape [sum of rows, ...]. Throws as Stack. Requires: there is at
// least one batch.
Element ConcatenateRows(const std::vector<Element>& batches);

// Returns rows [begin, end) of each component [n, ...]. The result shares the bytes of `batch`.
Element SliceRows(const Element& batch, int64_t begin, int64_t end);
// Returns row `index` of each component, without the first axis.
Element Row(const Element& batch, int64_t index);
// Returns the size of axis 0, which all components share. Throws InvalidArgumentError if a component is a scalar or if
// the sizes differ.
int64_t NumRows(const Element& batch);
// Returns the spec of one row of a batch of `spec`. Throws InvalidArgumentError if a component is a scalar.
ElementSpec RowSpec(const ElementSpec& spec);
// Returns the spec of a batch of `rows` elements of `spec`. -1: the number of rows is not known.
ElementSpec BatchSpec(const ElementSpec& spec, int64_t rows);

}  // namespace cohort::data
