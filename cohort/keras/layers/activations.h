// ActivationFunction: an activation function, which may be given by Keras's name.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// A function that keeps the shape of its input. Immutable, thread-safe and cheap to copy. A default ActivationFunction
// and "linear" are not valid(): they are the identity.
class COHORT_EXPORT ActivationFunction {
 public:
  ActivationFunction() = default;
  // Takes a name of ActivationNames(), such as "relu", "selu" or "softmax" (over the last axis). Throws
  // InvalidArgumentError that lists all names for any other name.
  ActivationFunction(const char* name) : ActivationFunction(std::string(name)) {}
  ActivationFunction(const std::string& name);
  // Makes an activation function of the program's own from `function`, which must keep the shape of its argument.
  ActivationFunction(std::string name, std::function<Output(Output)> function);
  // Takes a function of ops/, such as ops::Relu. If Keras has the function, this is the same as its name.
  ActivationFunction(Output (*function)(Output, const NodeName&));  // NOLINT(google-explicit-constructor)
  // Takes a function of the program's own, such as a lambda.
  template <typename F>
  requires(!std::same_as<F, ActivationFunction> && !std::convertible_to<F, std::string> &&
           std::is_invocable_r_v<Output, const F&, Output>)
      ActivationFunction(F function)  // NOLINT(google-explicit-constructor)
      : ActivationFunction("function", std::function<Output(Output)>(std::move(function))) {}

  bool valid() const { return function_ != nullptr; }
  const std::string& name() const { return name_; }
  // Returns the form in Keras's files, which is the name; serialization.h does the reverse. Throws UnimplementedError
  // for a function of the program's own.
  ConfigValue Serialized() const;
  // Adds nodes that compute the function of `x`. Returns `x` itself if valid() is false.
  Output operator()(Output x) const { return valid() ? function_(x) : x; }

 private:
  std::string name_ = "linear";
  bool of_keras_ = true;
  std::function<Output(Output)> function_;
};

// Returns the names of Keras's activation functions.
COHORT_EXPORT std::vector<std::string> ActivationNames();

}  // namespace cohort::keras
