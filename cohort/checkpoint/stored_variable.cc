#include "cohort/checkpoint/stored_variable.h"

namespace cohort {

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
