#include "cohort/keras/training/earlier_training.h"

#include "cohort/core/str_cat.h"
#include "cohort/keras/training/variable_values.h"

namespace cohort::keras {

void EarlierTraining::Look(Session& session) { found_ = marker_.Read(session).value_or(0); }

void EarlierTraining::LookForSteps(Session& session, const ops::Variable& iterations) {
  if (!session.Run(iterations.is_initialized()).scalar<bool>()) return;
  steps_ = session.Run(iterations.value()).scalar<int64_t>();
}

void EarlierTraining::Keep(Session& session, const std::vector<VariableInfo*>& variables) {
  if (found_ == 0 || !without_value_.empty()) return;
  std::vector<Output> questions;
  std::vector<ops::Variable> kept;
  for (VariableInfo* variable : variables) {
    kept.emplace_back(variable);
    questions.push_back(variable->is_initialized);
  }
  const RunResults answers = session.Run(questions);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (answers[i].scalar<bool>()) continue;
    without_value_ = variables[i]->name;
    values_.clear();
    return;
  }
  std::vector<Tensor> values = ReadVariables(session, kept);
  if (!ValuesFit(values, kept, kept.size())) {
    found_ = 0;  // of another model
    values_.clear();
    return;
  }
  for (size_t i = 0; i < variables.size(); ++i) values_[variables[i]] = std::move(values[i]);
}

void EarlierTraining::Forget() {
  found_ = 0;
  steps_.reset();
  without_value_.clear();
  values_.clear();
}

bool EarlierTraining::Holds(int64_t number, std::string* why) const {
  if (found_ == 0) {
    *why = "the parameter servers hold no training";
  } else if (found_ != number) {
    *why = "the parameter servers hold another training";
  } else if (!without_value_.empty()) {
    *why = StrCat("variable '", without_value_, "' has lost its value, because its parameter server was started again");
  } else {
    return true;
  }
  return false;
}

void EarlierTraining::Restore(Session& session, const std::function<bool(const VariableInfo&)>& except) const {
  std::vector<ops::Variable> variables;
  std::vector<Tensor> values;
  for (const auto& [variable, value] : values_) {
    if (except(*variable)) continue;
    variables.emplace_back(variable);
    values.push_back(value);
  }
  AssignVariables(session, variables, values);
}

void EarlierTraining::SetNumber(Session& session, int64_t number) {
  if (number == number_) return;
  marker_.Set(session, number);
  number_ = number;
}

}  // namespace cohort::keras
