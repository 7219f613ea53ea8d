#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"

namespace cohort {

void ShapeContext::CheckIndex(int i) const {
  if (i >= 0 && i < num_inputs()) return;
  throw InternalError(StrCat("[graph] the shape rule asks for input ", i, " of ", num_inputs()));
}

const Shape& ShapeContext::input(int i) const {
  CheckIndex(i);
  return inputs_.shape(i);
}

DType ShapeContext::input_dtype(int i) const {
  CheckIndex(i);
  return inputs_.dtype(i);
}

std::optional<Tensor> ShapeContext::input_value(int i) const {
  CheckIndex(i);
  return inputs_.value(i);
}

Shape ShapeContext::input_as_shape(int i) const {
  CheckIndex(i);
  return inputs_.value_as_shape(i);
}

Shape ShapeContext::handle_shape(int i) const {
  CheckIndex(i);
  return inputs_.handle_shape(i);
}

DType ShapeContext::handle_dtype(int i) const {
  CheckIndex(i);
  return inputs_.handle_dtype(i);
}

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
