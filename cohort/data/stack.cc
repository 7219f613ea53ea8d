#include "cohort/data/stack.h"

#include <algorithm>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

// Copies `count` elements of `part`, from element `from` on, to element `at` of `out`.
void CopyElements(const Tensor& part, int64_t from, int64_t count, int64_t at, Tensor* out) {
  if (part.dtype() == DType::kString) {
    std::copy_n(part.data<std::string>() + from, count, out->data<std::string>() + at);
  } else if (count > 0) {
    const size_t size = DTypeSize(part.dtype());
    std::memcpy(static_cast<char*>(out->raw_data()) + static_cast<size_t>(at) * size,
                static_cast<const char*>(part.raw_data()) + static_cast<size_t>(from) * size,
                static_cast<size_t>(count) * size);
  }
}

// Copies a block of `part` to a block of `out` of the shape `room`, which is not smaller. `axes` is the block's shape
// in `part`. The blocks begin at elements `from` and `at`.
void CopyBlock(const Tensor& part, const Shape& axes, int64_t from, const Shape& room, int64_t at, Tensor* out) {
  const int rank = axes.rank();
  if (rank <= 1 || axes == room) return CopyElements(part, from, axes.num_elements(), at, out);
  const Shape inner_axes = axes.Sub(1, rank), inner_room = room.Sub(1, rank);
  const int64_t step = inner_axes.num_elements(), room_step = inner_room.num_elements();
  for (int64_t i = 0; i < axes.dim(0); ++i) {
    CopyBlock(part, inner_axes, from + i * step, inner_room, at + i * room_step, out);
  }
}

// Sets all elements of `out` to `value`, a scalar.
void Fill(const Tensor& value, Tensor* out) {
  const int64_t count = out->num_elements();
  if (count == 0) return;
  CopyElements(value, 0, 1, 0, out);
  for (int64_t filled = 1; filled < count; filled *= 2) {
    CopyElements(*out, 0, std::min(filled, count - filled), filled, out);
  }
}

// Returns the shape to which component `component` of all elements is padded.
Shape PaddedShape(const std::vector<Element>& elements, size_t component, const Shape& wanted) {
  Shape padded = wanted;
  for (const Element& element : elements) {
    const Shape& shape = element.at(component).shape();
    if (shape.rank() != wanted.rank()) {
      throw InvalidArgumentError(StrCat("[data] expected a value of the rank of its padded shape ", wanted,
                                        " in component ", component, "; got shape ", shape,
                                        "; reshape the value with Map, or give another padded shape"));
    }
    for (int i = 0; i < shape.rank(); ++i) {
      if (wanted.dim(i) == Shape::kUnknownDim) {
        padded.set_dim(i, std::max(padded.dim(i), shape.dim(i)));
      } else if (shape.dim(i) > wanted.dim(i)) {
        throw DataLossError(StrCat("[data] expected a value that fits into its padded shape ", wanted, " in component ",
                                   component, "; got shape ", shape,
                                   "; cut the value with Map, or give a larger padded shape or -1"));
      }
    }
  }
  return padded;
}

Tensor JoinPadded(const std::vector<Element>& elements, size_t component, const Shape& wanted, const Tensor& value) {
  const Shape padded = PaddedShape(elements, component, wanted);
  const DType dtype = elements.front().at(component).dtype();
  Tensor out = Tensor::Zeros(dtype, Shape{static_cast<int64_t>(elements.size())}.Concat(padded));
  if (value.defined()) Fill(value, &out);
  const int64_t step = padded.num_elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& part = elements[i].at(component);
    if (part.dtype() != dtype) {
      throw InvalidArgumentError(StrCat("[data] expected elements of one dtype for a batch; got ", dtype, " and, ", i,
                                        " elements later, ", part.dtype(), " in component ", component));
    }
    CopyBlock(part, part.shape(), 0, padded, static_cast<int64_t>(i) * step, &out);
  }
  return out;
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
      throw InvalidArgumentError(
          StrCat("[data] expected elements of one shape for a batch; got ", first.dtype(), first.shape(), " and, ", i,
                 " elements later, ", part.dtype(), part.shape(), " in component ", component,
                 skip == 0 ? "; use PaddedBatch for values of different shapes"
                           : "; give the batches one shape, for example by the padded_shapes of PaddedBatch"));
    }
    CopyElements(part, 0, part.num_elements(), at, &out);
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

Element StackPadded(const std::vector<Element>& elements, const Padding& padding) {
  Element batch(elements.front().size());
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i] = JoinPadded(elements, i, padding.shapes.at(i), padding.values.at(i));
  }
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
