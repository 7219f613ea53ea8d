#include "cohort/data/stack.h"

#include <algorithm>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

// Copies all of `part` to element `at` of `out`.
void CopyInto(const Tensor& part, int64_t at, Tensor* out) {
  if (part.dtype() == DType::kString) {
    std::copy_n(part.data<std::string>(), part.num_elements(), out->data<std::string>() + at);
  } else if (part.bytes() > 0) {
    std::memcpy(static_cast<char*>(out->raw_data()) + static_cast<size_t>(at) * DTypeSize(part.dtype()),
                part.raw_data(), part.bytes());
  }
}

// Joins component `component` of all elements. The result has `rows` rows of the first one's shape without its first
// `skip` axes.
Tensor Join(const std::vector<Element>& elements, size_t component, int64_t rows, int skip) {
  const Tensor& first = elements.front()[component];
  const Shape row = first.shape().Sub(skip, first.shape().rank());
  Tensor out(first.dtype(), Shape{rows}.Concat(row));
  int64_t at = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& part = elements[i].at(component);
    const bool fits = part.dtype() == first.dtype() && part.shape().rank() == first.shape().rank() &&
                      part.shape().Sub(skip, part.shape().rank()) == row;
    if (!fits) {
      throw InvalidArgumentError(StrCat("[data] expected elements of one shape for a batch; got ", first.dtype(),
                                        first.shape(), " and, ", i, " elements later, ", part.dtype(), part.shape(),
                                        " in component ", component));
    }
    CopyInto(part, at, &out);
    at += part.num_elements();
  }
  return out;
}

}  // namespace

Element Stack(const std::vector<Element>& elements) {
  Element batch(elements.front().size());
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = Join(elements, i, static_cast<int64_t>(elements.size()), 0);
  return batch;
}

Element ConcatenateRows(const std::vector<Element>& batches) {
  int64_t rows = 0;
  for (const Element& batch : batches) rows += NumRows(batch);
  Element all(batches.front().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = Join(batches, i, rows, 1);
  return all;
}

Element SliceRows(const Element& batch, int64_t begin, int64_t end) {
  Element rows;
  for (const Tensor& tensor : batch) rows.push_back(tensor.Slice(begin, end));
  return rows;
}

Element Row(const Element& batch, int64_t index) {
  Element row = SliceRows(batch, index, index + 1);
  for (Tensor& tensor : row) tensor = tensor.Reshaped(tensor.shape().Sub(1, tensor.shape().rank()));
  return row;
}

int64_t NumRows(const Element& batch) {
  for (const Tensor& tensor : batch) {
    if (tensor.shape().rank() >= 1 && tensor.shape().dim(0) == batch.front().shape().dim(0)) continue;
    throw InvalidArgumentError(
        StrCat("[data] expected a batch, whose components have one first dimension; got ", ToString(SpecOf(batch))));
  }
  return batch.empty() ? 0 : batch.front().shape().dim(0);
}

ElementSpec RowSpec(const ElementSpec& spec) {
  ElementSpec rows = spec;
  for (TensorSpec& part : rows) {
    if (!part.shape.has_rank()) continue;
    if (part.shape.rank() == 0) {
      throw InvalidArgumentError(StrCat("[data] expected batches, whose components have a first dimension; got ",
                                        ToString(spec), "; call Batch before"));
    }
    part.shape = part.shape.Sub(1, part.shape.rank());
  }
  return rows;
}

ElementSpec BatchSpec(const ElementSpec& spec, int64_t rows) {
  ElementSpec batches = spec;
  for (TensorSpec& part : batches) {
    if (part.shape.has_rank()) part.shape = Shape{rows}.Concat(part.shape);
  }
  return batches;
}

}  // namespace cohort::data
