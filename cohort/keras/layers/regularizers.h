// Regularizer: a penalty on a weight. The penalty is added to the loss once in each step, also with several replicas.
#pragma once

#include <functional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Immutable, thread-safe and cheap to copy. A default Regularizer is not valid(): there is no penalty.
class COHORT_EXPORT Regularizer {
 public:
  Regularizer() = default;
  // Makes "l1", "l2" or "l1_l2" (also "L1", "L2", "L1L2"), each with Keras's factor 0.01. Throws InvalidArgumentError
  // for another name.
  Regularizer(const char* name) : Regularizer(std::string(name)) {}
  Regularizer(const std::string& name);
  // Makes a regularizer of the program's own. `penalty` adds nodes that compute a scalar of the weight's dtype.
  explicit Regularizer(std::function<Output(Output weight)> penalty) : penalty_(std::move(penalty)) {}
  // Makes one of Keras's regularizers, with its form in files.
  Regularizer(std::function<Output(Output weight)> penalty, ConfigValue serialized)
      : penalty_(std::move(penalty)), serialized_(std::move(serialized)) {}

  bool valid() const { return penalty_ != nullptr; }
  Output Penalty(Output weight) const { return penalty_(weight); }
  // Returns the form in Keras's files, or null if not valid(); serialization.h does the reverse. Throws
  // UnimplementedError for a regularizer of the program's own.
  ConfigValue Serialized() const;

 private:
  std::function<Output(Output)> penalty_;
  ConfigValue serialized_;  // null for a regularizer of the program's own
};

namespace regularizers {

COHORT_EXPORT Regularizer L1(double l1 = 0.01);                    // penalty l1 * sum of |w|
COHORT_EXPORT Regularizer L2(double l2 = 0.01);                    // penalty l2 * sum of w^2
COHORT_EXPORT Regularizer L1L2(double l1 = 0.0, double l2 = 0.0);  // the sum of the penalties of L1 and L2
}  // namespace regularizers
}  // namespace cohort::keras
