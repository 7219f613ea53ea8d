#include "cohort/checkpoint/stored_variable.h"

#include <algorithm>

namespace cohort {
namespace {

template <typename From, typename To>
Tensor Copied(const Tensor& from) {
  Tensor to(kDTypeOf<To>, from.shape());
  std::copy_n(from.data<From>(), from.num_elements(), to.data<To>());
  return to;
}

template <typename To>
Tensor Widened(const Tensor& from) {
  return from.dtype() == DType::kUint8 ? Copied<uint8_t, To>(from) : Copied<int32_t, To>(from);
}

}  // namespace

bool IsReadableAs(DType stored, DType wanted) {
  return stored == wanted || (IsInteger(stored) && IsInteger(wanted) && DTypeSize(stored) < DTypeSize(wanted));
}

Tensor StoredVariable::Read(const BundleReader& reader, DType dtype) const {
  Tensor value = rows ? reader.ReadSlice(name, *rows) : reader.Read(name);
  if (value.dtype() == dtype) return value;
  return dtype == DType::kInt64 ? Widened<int64_t>(value) : Widened<int32_t>(value);
}

StoredVariable StoredVariable::Of(const VariableInfo& variable) {
  if (!variable.rows_of || variable.dtype == DType::kString) return {variable.name, variable.shape, std::nullopt};
  const RowsOfVariable& whole = *variable.rows_of;
  return {whole.name, whole.shape, TensorSlice::Rows(whole.shape, whole.first_row, variable.shape.dim(0))};
}

StoredVariable StoredVariable::In(const BundleReader& reader, const VariableInfo& variable) {
  StoredVariable stored = Of(variable);
  if (stored.rows && !reader.Has(stored.name) && reader.Has(variable.name)) {
    return {variable.name, variable.shape, std::nullopt};
  }
  return stored;
}

}  // namespace cohort
