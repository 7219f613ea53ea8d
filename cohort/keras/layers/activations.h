// Activation functions by Keras's names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Immutable, cheap to copy. Not valid() where an option leaves it out: the identity.
class COHORT_EXPORT ActivationFunction {
 public:
  ActivationFunction() = default;
  // "relu", "relu6", "leaky_relu" (slope 0.2), "elu", "selu", "gelu" (exact), "sigmoid", "hard_sigmoid", "tanh",
  // "softplus", "softsign", "exponential", "swish" or "silu", "softmax" (last axis), "log_softmax", "linear". Throws
  // InvalidArgumentError that lists them for another name.
  ActivationFunction(const char* name) : ActivationFunction(std::string(name)) {}
  ActivationFunction(const std::string& name);
  // One of the program's own, which keeps the shape.
  ActivationFunction(std::string name, std::function<Output(Output)> function);

  bool valid() const { return function_ != nullptr; }
  const std::string& name() const { return name_; }
  // As Keras's files hold it: its name; serialization.h has the reverse. Throws UnimplementedError for a function of
  // the program's own.
  ConfigValue Serialized() const;
  // x itself where there is no function.
  Output operator()(Output x) const { return valid() ? function_(x) : x; }

 private:
  std::string name_ = "linear";
  bool of_keras_ = true;
  std::function<Output(Output)> function_;
};

}  // namespace cohort::keras
