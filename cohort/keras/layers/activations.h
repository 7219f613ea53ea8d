// Activation functions by Keras's names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Immutable, cheap to copy. Not valid() where an option leaves it out: the identity.
class ActivationFunction {
 public:
  ActivationFunction() = default;
  // `name` is one of ActivationNames(), such as "relu", "selu" or "softmax" (over the last axis). Throws
  // InvalidArgumentError that lists all names for another one.
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

// Returns the names of Keras's activation functions.
std::vector<std::string> ActivationNames();

}  // namespace cohort::keras
