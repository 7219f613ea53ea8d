#include "cohort/keras/layers/activations.h"

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/names.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/select.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

Output Number(Output like, double value) { return ops::ScalarLike(like, value); }

// x (1 + erf(x / sqrt 2)) / 2, which is the exact form.
Output Gelu(Output x) {
  const Output phi = ops::Add(Number(x, 1), ops::Erf(ops::Mul(x, Number(x, std::sqrt(0.5)))));
  return ops::Mul(ops::Mul(Number(x, 0.5), x), phi);
}

// Probabilities are always float32.
Output Probabilities(Output x) {
  return ops::Softmax(x.dtype() == DType::kBfloat16 ? ops::Cast(x, DType::kFloat32) : x);
}

// relu6(x + 3) / 6
Output HardSigmoid(Output x) { return ops::Mul(ops::Relu6(ops::Add(x, Number(x, 3))), Number(x, 1.0 / 6)); }
// x / (1 + |x|)
Output Softsign(Output x) { return ops::Div(x, ops::Add(Number(x, 1), ops::Abs(x))); }

using Function = Output (*)(Output);
const NameTable<Function>& Activations() {
  static const NameTable<Function> table("activation",
                                         {
                                             {"linear", nullptr},
                                             {"relu", [](Output x) { return ops::Relu(x); }},
                                             {"relu6", [](Output x) { return ops::Relu6(x); }},
                                             {"leaky_relu", [](Output x) { return ops::LeakyRelu(x); }},  // slope 0.2
                                             {"elu", [](Output x) { return ops::Elu(x); }},
                                             {"selu", [](Output x) { return ops::Selu(x); }},
                                             {"gelu", Gelu},
                                             {"sigmoid", [](Output x) { return ops::Sigmoid(x); }},
                                             {"hard_sigmoid", HardSigmoid},
                                             {"tanh", [](Output x) { return ops::Tanh(x); }},
                                             {"softplus", [](Output x) { return ops::Softplus(x); }},
                                             {"softsign", Softsign},
                                             {"exponential", [](Output x) { return ops::Exp(x); }},
                                             {"swish", [](Output x) { return ops::Swish(x); }},
                                             {"silu", [](Output x) { return ops::Swish(x); }},
                                             {"softmax", Probabilities},
                                             {"log_softmax", [](Output x) { return ops::LogSoftmax(x); }},
                                         });
  return table;
}

}  // namespace

std::vector<std::string> ActivationNames() { return Activations().names(); }

ActivationFunction::ActivationFunction(const std::string& name) : name_(name) {
  if (const Function function = Activations().Find(name)) function_ = function;
}

ActivationFunction::ActivationFunction(std::string name, std::function<Output(Output)> function)
    : name_(std::move(name)), of_keras_(false), function_(std::move(function)) {}

ActivationFunction::ActivationFunction(Output (*function)(Output, const NodeName&))
    : ActivationFunction("function", [function](Output x) { return function(x, NodeName("")); }) {
  using OpFunction = Output (*)(Output, const NodeName&);
  constexpr std::pair<OpFunction, const char*> kNamed[] = {
      {ops::Relu, "relu"},         {ops::Relu6, "relu6"},           {ops::Elu, "elu"},
      {ops::Selu, "selu"},         {ops::Sigmoid, "sigmoid"},       {ops::Tanh, "tanh"},
      {ops::Softplus, "softplus"}, {ops::Swish, "swish"},           {ops::Softmax, "softmax"},
      {ops::Exp, "exponential"},   {ops::LogSoftmax, "log_softmax"}};
  for (const auto& [known, name] : kNamed) {
    if (function == known) *this = ActivationFunction(name);
  }
}

ConfigValue ActivationFunction::Serialized() const {
  if (of_keras_) return name_;
  throw UnimplementedError(
      StrCat("[keras/activations] '", name_, "' is a function of the program's own, which a file cannot describe"));
}

ActivationFunction DeserializeActivation(const ConfigValue& value) {
  if (value.is_null()) return {};
  const std::string name = NameIn(value);
  if (!name.empty()) return name;
  throw InvalidArgumentError(
      StrCat("[keras/serialization] expected the name of an activation function; got ", value.ToJson()));
}

}  // namespace cohort::keras
