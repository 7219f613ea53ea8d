// Regularizers: a penalty on a weight that is added to the loss, once a step whatever the number of replicas.
#pragma once

#include <functional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Immutable, cheap to copy. Not valid() where an option leaves it out: no penalty.
class COHORT_EXPORT Regularizer {
 public:
  Regularizer() = default;
  // "l1", "l2", "l1_l2" with Keras's 0.01. Throws InvalidArgumentError for another name.
  Regularizer(const char* name) : Regularizer(std::string(name)) {}
  Regularizer(const std::string& name);
  // `penalty`: adds the nodes of a scalar of the weight's dtype.
  explicit Regularizer(std::function<Output(Output weight)> penalty) : penalty_(std::move(penalty)) {}
  // One that Keras has, with its form in files.
  Regularizer(std::function<Output(Output weight)> penalty, ConfigValue serialized)
      : penalty_(std::move(penalty)), serialized_(std::move(serialized)) {}

  bool valid() const { return penalty_ != nullptr; }
  Output Penalty(Output weight) const { return penalty_(weight); }
  // As Keras's files hold it, null where not valid(); serialization.h has the reverse. Throws UnimplementedError for a
  // regularizer of the program's own.
  ConfigValue Serialized() const;

 private:
  std::function<Output(Output)> penalty_;
  ConfigValue serialized_;  // null: of the program's own
};

namespace regularizers {

COHORT_EXPORT Regularizer L1(double l1 = 0.01);                    // l1 sum |w|
COHORT_EXPORT Regularizer L2(double l2 = 0.01);                    // l2 sum w^2
COHORT_EXPORT Regularizer L1L2(double l1 = 0.0, double l2 = 0.0);  // both
}  // namespace regularizers
}  // namespace cohort::keras
