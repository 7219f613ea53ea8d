// StoredVariable: under which name, and as which rows of it, a checkpoint has the value of a variable.
#pragma once

#include <optional>
#include <string>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/checkpoint/tensor_slice.h"
#include "cohort/graph/scopes.h"

namespace cohort {

// Returns whether a variable of `wanted` can have each value of a stored tensor of `stored`: if they are equal, or both
// are integers and `wanted` is wider. Programs for TensorFlow often have a global step of int32.
bool IsReadableAs(DType stored, DType wanted);

// A variable that is some rows of another one (VariableInfo::rows_of) is stored as these rows of the whole tensor, as
// TensorFlow stores partitioned variables. So a program with other parts, or with one variable, can read it.
struct StoredVariable {
  std::string name;                 // of the tensor in the checkpoint
  Shape shape;                      // of the whole tensor, as the graph declares it
  std::optional<TensorSlice> rows;  // empty: the variable is the whole tensor

  // Returns how Saver writes the variable. Strings are not written in parts.
  static StoredVariable Of(const VariableInfo& variable);
  // Returns how the checkpoint has the variable. If it has parts as tensors of their own ("w/part_0"), as earlier
  // versions wrote them, this is the part's own name. Does not look whether the checkpoint has it at all.
  static StoredVariable In(const BundleReader& reader, const VariableInfo& variable);

  // Returns the value as `dtype`. Requires: IsReadableAs holds for it. Throws what BundleReader::Read and ReadSlice
  // throw.
  Tensor Read(const BundleReader& reader, DType dtype) const;
  // Returns the text of `rows` for ops, or "" if the variable is the whole tensor.
  std::string ShapeAndSliceText() const { return rows ? ShapeAndSlice(shape, *rows) : ""; }
};

}  // namespace cohort
