// Reads a JSON list of requests from stdin, and prints a JSON list of answers. A request asks for what train/ has of
// TensorFlow 1: moving averages, FtrlOptimizer, learning-rate schedules. test_train.py asks TensorFlow the same.
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"
#include "cohort/train/learning_rate.h"
#include "cohort/train/moving_averages.h"
#include "cohort/train/optimizer.h"

namespace cohort::train {
namespace {

using Json = nlohmann::json;

Tensor VectorOf(const Json& values) { return Tensor::Vector(values.get<std::vector<float>>()); }

std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const VariableInfo* variable : graph.variables()) names.push_back(variable->name);
  return names;
}

// The averages of a variable that takes the given values, or of a fed value.
Json AnswerAverages(const Json& request) {
  Graph graph;
  const Json& values = request.at("values");
  const Output fed = ops::Placeholder(graph, DType::kFloat32, VectorOf(values[0]).shape(), "fed");
  const Output number = ops::Placeholder(graph, DType::kInt64, Shape(), "number");
  const ops::Variable w(graph, VectorOf(request.at("initial")), {.name = "w"});
  ops::Variable step;
  if (request.at("num_updates").get<bool>()) step = ops::GetOrCreateGlobalStep(graph);
  ExponentialMovingAverage ema(request.at("decay").get<double>(), step, request.at("zero_debias").get<bool>());
  std::vector<Node*> sets = {w.Assign(fed)};
  if (step.valid()) sets.push_back(step.Assign(number));
  const bool of_variable = request.at("of_variable");
  Node* update = of_variable ? ema.Apply({w}) : ema.ApplyToValues({fed});
  const Output average = of_variable ? ema.average(w).Read() : ema.average(fed).Read();
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  Json averages = Json::array();
  for (size_t i = 0; i < values.size(); ++i) {
    const FeedList feeds = {{fed, VectorOf(values[i])}, {number, Tensor::Scalar(static_cast<int64_t>(i))}};
    session.Run(feeds, {}, sets);
    session.Run(feeds, {}, {update});
    averages.push_back(session.Run(average).ToVector<float>());
  }
  std::vector<std::string> restored;
  for (const auto& [name, variable] : ema.variables_to_restore(graph)) restored.push_back(name + "=" + variable.name());
  return {{"averages", averages}, {"variables", NamesOf(graph)}, {"restored", restored}};
}

Json AnswerFtrl(const Json& request) {
  Graph graph;
  const Json& o = request.at("options");
  FtrlOptimizer optimizer(o.at("learning_rate").get<double>(),
                          {.learning_rate_power = o.value("learning_rate_power", -0.5),
                           .initial_accumulator_value = o.value("initial_accumulator_value", 0.1),
                           .l1_regularization_strength = o.value("l1_regularization_strength", 0.0),
                           .l2_regularization_strength = o.value("l2_regularization_strength", 0.0),
                           .l2_shrinkage_regularization_strength = o.value("l2_shrinkage_regularization_strength", 0.0),
                           .beta = o.value("beta", 0.0)});
  const ops::Variable w(graph, VectorOf(request.at("initial")), {.name = "w"});
  const Output fed = ops::Placeholder(graph, DType::kFloat32, w.shape(), "fed");
  Gradient gradient(fed);
  if (request.contains("rows")) {  // of the fed gradient, only these rows
    const std::vector<int32_t> rows = request.at("rows");
    gradient = Gradient(ops::Gather(fed, ops::Const(graph, rows)), ops::Const(graph, rows),
                        ops::Const(graph, std::vector<int64_t>{w.shape().dim(0)}));
  }
  Node* apply = optimizer.ApplyGradients({{gradient, w}});
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  for (const Json& values : request.at("gradients")) session.Run({{fed, VectorOf(values)}}, {}, {apply});
  Json all = Json::object();
  for (VariableInfo* info : graph.variables()) {
    all[info->name] = session.Run(ops::Variable(info)).ToVector<float>();
  }
  return all;
}

Json AnswerRestarts(const Json& request) {
  Graph graph;
  const Output step = ops::Placeholder(graph, DType::kInt64, Shape());
  const Output rate = CosineDecayRestarts(0.1, step, request.at("first_decay_steps"), request.at("t_mul"),
                                          request.at("m_mul"), request.at("alpha"));
  Session session(graph);
  Json rates = Json::array();
  for (int64_t i = 0; i < 50; ++i) {
    rates.push_back(session.Run({{step, Tensor::Scalar(i)}}, {rate})[0].scalar<float>());
  }
  return rates;
}

int Main() {
  RegisterAll();
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  Json answers = Json::array();
  for (const Json& request : Json::parse(text)) {
    const std::string kind = request.at("kind");
    answers.push_back(kind == "averages" ? AnswerAverages(request)
                      : kind == "ftrl"   ? AnswerFtrl(request)
                                         : AnswerRestarts(request));
  }
  std::cout << answers << '\n';
  return 0;
}

}  // namespace
}  // namespace cohort::train

int main() { return cohort::train::Main(); }
