// ExponentialMovingAverage: moving averages of variables and of other values. It follows TensorFlow's
// tf.compat.v1.train.ExponentialMovingAverage.
//
//   train::ExponentialMovingAverage ema(0.999);
//   Node* update = optimizer.Minimize(loss, global_step);
//   const ControlDependencies after(graph, {update});
//   Node* train_op = ema.Apply({w, b});
//
// An evaluation reads the averages in place of the variables:
//
//   Saver saver(graph, {.names = ema.variables_to_restore(graph)});
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/train/hyperparameter.h"

namespace cohort::train {

// Keeps an average (a "shadow") of each variable. Each run of the node that Apply returns does
// shadow -= (1 - d) * (shadow - variable). The shadow of "w" is the variable "w/<name>": not trainable, and saved if
// "w" is. It has the dtype and shape of "w", lies beside it (on its parameter server), and its update runs there. The
// program owns the object; the graph of the variables must outlive it. Only one thread at a time may use it.
class COHORT_EXPORT ExponentialMovingAverage {
 public:
  // `decay` is d: a number, or a floating scalar of the graph. If `num_updates` (an integer or floating scalar, such as
  // the global step) is given, d is min(decay, (1 + num_updates) / (10 + num_updates)), so that averages move faster at
  // the beginning. `zero_debias` concerns only the averages of ApplyToValues.
  explicit ExponentialMovingAverage(Hyperparameter decay, const ops::Variable& num_updates = {},
                                    bool zero_debias = false, std::string name = "ExponentialMovingAverage");
  ExponentialMovingAverage(const ExponentialMovingAverage&) = delete;
  ExponentialMovingAverage& operator=(const ExponentialMovingAverage&) = delete;

  const std::string& name() const { return name_; }
  // Adds the update of the averages of `variables`, or of all trainable variables of `graph`, and returns the node that
  // has run when all updates are made. The variables are read after the current control
  // dependencies. Makes the shadows that do not exist yet: a shadow begins with the value of its variable if that has
  // one when the shadow's initializer runs, else with its initial value. A variable with parts() is replaced by its
  // parts, each of which has a shadow of its own. Throws InvalidArgumentError if there is no variable, or for a dtype
  // other than bfloat16, float32 and float64.
  Node* Apply(const std::vector<ops::Variable>& variables);
  Node* Apply(Graph& graph);
  // Does the same with values, such as a loss, of fully known shape. The average of the output of a node "loss" is the
  // variable "loss/<name>". It begins with zeros. So after t updates it is too small by the factor 1 - d^t. With
  // `zero_debias` it is divided by this factor (for the d of this update): then "loss/<name>/biased" keeps the average
  // that was not divided, and "loss/<name>/local_step" keeps t. Throws InvalidArgumentError as Apply does.
  Node* ApplyToValues(const std::vector<Output>& values);

  // Returns the variable with the average. It is not valid() if there is none.
  ops::Variable average(const ops::Variable& variable) const;
  ops::Variable average(const Output& value) const;
  // Returns the name of the variable with the average, also if Apply has not made it.
  std::string average_name(const ops::Variable& variable) const;
  // Returns, for SaverOptions::names, all variables of `graph` that are not local. Those with an average and those that
  // are trainable are listed under the name of their average, the others (except the averages themselves) under their
  // own. A Saver with this list puts the averages of a checkpoint into the variables.
  std::map<std::string, ops::Variable> variables_to_restore(const Graph& graph) const;
  // The same, but only `averaged` are listed under the names of their averages.
  std::map<std::string, ops::Variable> variables_to_restore(const Graph& graph,
                                                            const std::vector<ops::Variable>& averaged) const;

 private:
  struct Biased {
    ops::Variable average, local_step;
  };

  ops::Variable MakeShadow(const ops::Variable& variable);
  void MakeShadow(const Output& value);
  // Returns 1 - d as float32, read now; not valid if it is a fixed number.
  Output Rate(Graph& graph);
  // Returns 1 - d as a scalar for an update of `variable`. `rate` is the result of Rate.
  Output RateFor(const ops::Variable& variable, const Output& rate);
  Node* UpdateBiased(const ops::Variable& shadow, const Biased& biased, const Output& value, const Output& rate);

  Hyperparameter decay_;
  Hyperparameter fixed_rate_;  // 1 - decay, of a fixed decay
  const ops::Variable num_updates_;
  const bool zero_debias_;
  const std::string name_;
  std::map<VariableInfo*, ops::Variable> of_variables_;
  std::map<std::pair<const Node*, int>, ops::Variable> of_values_;
  std::map<std::pair<const Node*, int>, Biased> biased_;
};

}  // namespace cohort::train
