// Joins elements to batches, and cuts batches apart.
#pragma once

#include <vector>

#include "cohort/data/element.h"

namespace cohort::data {

// Makes one batch of elements: component i has shape [elements.size(), shape of component i]. Throws
// InvalidArgumentError if the shapes of a component differ. Requires: there is at least one element.
Element Stack(const std::vector<Element>& elements);

// How StackPadded pads. Both lists have one entry for each component.
struct Padding {
  std::vector<Shape> shapes;   // of one element; -1: as long as the longest one of the batch
  std::vector<Tensor> values;  // scalars; an undefined tensor means zero, false or the empty string
};
// Makes one batch of elements whose shapes may differ: component i has shape [elements.size(), padded shape]. Each
// value begins at index 0 of every dimension, and the padding follows it. Throws InvalidArgumentError if a component
// has another rank than its padded shape, and DataLossError if it is larger. Requires: there is at least one element.
Element StackPadded(const std::vector<Element>& elements, const Padding& padding);

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
