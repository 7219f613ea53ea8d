#include "cohort/data/stack.h"

#include <algorithm>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

void CopyInto(const Tensor& part, int64_t row, Tensor* out) {
  const int64_t count = part.num_elements();
  if (part.dtype() == DType::kString) {
    std::copy_n(part.data<std::string>(), count, out->data<std::string>() + row * count);
  } else if (part.bytes() > 0) {
    std::memcpy(static_cast<char*>(out->raw_data()) + static_cast<size_t>(row) * part.bytes(), part.raw_data(),
                part.bytes());
  }
}

Tensor StackComponent(const std::vector<Element>& elements, size_t component) {
  const Tensor& first = elements.front()[component];
  Tensor out(first.dtype(), Shape{static_cast<int64_t>(elements.size())}.Concat(first.shape()));
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& part = elements[i].at(component);
    if (!(part.shape() == first.shape()) || part.dtype() != first.dtype()) {
      throw InvalidArgumentError(StrCat("[data] expected elements of one shape for a batch; got ", first.dtype(),
                                        first.shape(), " and, ", i, " elements later, ", part.dtype(), part.shape(),
                                        " in component ", component));
    }
    CopyInto(part, static_cast<int64_t>(i), &out);
  }
  return out;
}

}  // namespace

Element Stack(const std::vector<Element>& elements) {
  Element batch(elements.front().size());
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = StackComponent(elements, i);
  return batch;
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
