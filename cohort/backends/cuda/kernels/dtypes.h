// Which dtypes kernels accept. The functions return the type of elements, or throw UnimplementedError that names the
// op.
#pragma once

#include <string>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/core/dtype.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

inline ElementType FloatingType(DType dtype, const std::string& op) {
  if (IsFloating(dtype)) return ElementTypeOf(dtype);
  throw UnimplementedError(StrCat("[backends/cuda] ", op, " is there for float32, float64 and bfloat16; got ", dtype));
}
inline ElementType NumberType(DType dtype, const std::string& op) {
  return IsInteger(dtype) ? ElementTypeOf(dtype) : FloatingType(dtype, op);
}
inline ElementType NumberOrBoolType(DType dtype, const std::string& op) {
  return dtype == DType::kBool ? ElementType::kBool : NumberType(dtype, op);
}

}  // namespace cohort::cuda
