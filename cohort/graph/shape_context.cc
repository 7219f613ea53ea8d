#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/graph.h"
#include "cohort/graph/op_def.h"

namespace cohort {
namespace {

const Output& At(const std::vector<Output>& inputs, int i) {
  if (i < 0 || i >= static_cast<int>(inputs.size())) {
    throw InternalError(StrCat("[graph] the shape rule asks for input ", i, " of ", inputs.size()));
  }
  return inputs[static_cast<size_t>(i)];
}

}  // namespace

int ShapeContext::num_inputs() const { return static_cast<int>(inputs_.size()); }
const Shape& ShapeContext::input(int i) const { return At(inputs_, i).shape(); }
DType ShapeContext::input_dtype(int i) const { return At(inputs_, i).dtype(); }
std::optional<Tensor> ShapeContext::input_value(int i) const { return ConstantValue(At(inputs_, i)); }
Shape ShapeContext::input_as_shape(int i) const { return ConstantValueAsShape(At(inputs_, i)); }
Shape ShapeContext::handle_shape(int i) const { return HandleShape(At(inputs_, i)); }
DType ShapeContext::handle_dtype(int i) const { return HandleDType(At(inputs_, i)); }

Shape ShapeContext::WithRank(int i, int rank) const {
  const Shape& shape = input(i);
  if (!shape.has_rank()) return Shape::UnknownDims(rank);
  if (shape.rank() != rank) {
    throw InvalidArgumentError(
        StrCat("Shape must be rank ", rank, " but is rank ", shape.rank(), " for input ", i, ", got ", shape));
  }
  return shape;
}

Shape ShapeContext::WithRankAtLeast(int i, int rank) const {
  const Shape& shape = input(i);
  if (shape.has_rank() && shape.rank() < rank) {
    throw InvalidArgumentError(
        StrCat("Shape must be at least rank ", rank, " but is rank ", shape.rank(), " for input ", i, ", got ", shape));
  }
  return shape;
}

void ShapeContext::FailAttr(std::string_view name) {
  throw InternalError(
      StrCat("[graph] the shape rule asks for attribute '", name, "', which the op lacks or has with another type"));
}

}  // namespace cohort
