// EarlierTraining: what an earlier program has left on the parameter servers, so that a program that was started again
// can go on with it. Internal to keras/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/train/session/training_marker.h"

namespace cohort::keras {

// Knows the training that the variables of a model on parameter servers are of, by its number, and keeps the values
// that the variables had before this program gives them new ones. The number is 0 while variables get values that are
// not of one state of a training. A ModelEngine owns it. Used by one thread. A function that takes a session may be
// called again if the session is lost.
class EarlierTraining {
 public:
  // Adds nodes to the graph: a variable on `device`, whose name begins with `prefix`.
  EarlierTraining(Graph& graph, const std::string& device, const std::string& prefix)
      : marker_(graph, device, prefix + "training_number") {}

  // Reads the number that the variables have. Call it before they get new values, and SetNumber(0) after it.
  void Look(Session& session);
  // Reads how many updates an optimizer has made that has this variable, if it has a value.
  void LookForSteps(Session& session, const ops::Variable& iterations);
  // Keeps the values of these variables, which are about to be initialized, unless Look has found no number.
  void Keep(Session& session, const std::vector<VariableInfo*>& variables);
  // Forgets the values, and what the first two functions have found.
  void Forget();
  // Returns what LookForSteps has found: nullopt if there was no earlier program, or the value was lost.
  std::optional<int64_t> steps() const { return steps_; }
  // Returns whether the variables are of the training `number`, and all of them have kept their values. Otherwise sets
  // *why to the reason.
  bool Holds(int64_t number, std::string* why) const;
  // Gives the variables the kept values, except those for which `except` returns true. Adds nodes to the graph.
  void Restore(Session& session, const std::function<bool(const VariableInfo&)>& except) const;

  // Gives the variables a number.
  void SetNumber(Session& session, int64_t number);
  // Returns the number that SetNumber has set last.
  int64_t number() const { return number_; }

 private:
  const train::TrainingMarker marker_;
  int64_t number_ = -1;  // -1: not set yet
  int64_t found_ = 0;    // by Look
  std::optional<int64_t> steps_;
  std::string without_value_;  // the first variable that had none
  std::map<VariableInfo*, Tensor> values_;
};

}  // namespace cohort::keras
