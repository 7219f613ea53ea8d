#include "cohort/keras/training/variable_values.h"

#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {

std::vector<Tensor> ReadVariables(Session& session, const std::vector<ops::Variable>& variables) {
  std::vector<Output> values;
  values.reserve(variables.size());
  for (const ops::Variable& variable : variables) values.push_back(variable.value());
  if (values.empty()) return {};
  // Returns copies, because an update by rows changes a variable's memory in place.
  std::vector<Tensor> tensors = session.Run(values);
  for (Tensor& tensor : tensors) tensor = tensor.Clone();
  return tensors;
}

bool ValuesFit(const std::vector<Tensor>& values, const std::vector<ops::Variable>& variables, size_t count) {
  if (values.size() < count || variables.size() < count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (values[i].dtype() != variables[i].dtype() || !(values[i].shape() == variables[i].shape())) return false;
  }
  return true;
}

void AssignVariables(Session& session, const std::vector<ops::Variable>& variables, const std::vector<Tensor>& values) {
  FeedList feeds;
  std::vector<Node*> assignments;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Output value = ops::Placeholder(variables[i].graph(), values[i].dtype(), values[i].shape(), "new_value");
    feeds.emplace_back(value, values[i].Clone());
    assignments.push_back(variables[i].Assign(value));
  }
  if (!assignments.empty()) session.Run(feeds, {}, assignments);
}

}  // namespace cohort::keras
