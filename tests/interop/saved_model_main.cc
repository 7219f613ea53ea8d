// Writes SavedModels for test_saved_model.py, and reads TensorFlow's.
//   interop_saved_model export FOLDER        trains an Estimator and exports it below FOLDER. Prints {"dir": ..., "x":
//                                            rows, "labels": classes, "probabilities": rows, "logits": rows}
//   interop_saved_model save_session DIR     trains on a parameter server, and saves the session to DIR. Prints {"x":
//                                            rows, "scores": rows}
//   interop_saved_model run DIR SIGNATURE OUTPUT X...   feeds the vector X to the input "x" and prints the output
//   interop_saved_model predict DIR          reads [{"signature": NAME, "inputs": {NAME: tensor}}] from stdin, and
//   prints
//                                            [{NAME: tensor}]; a tensor is {"dtype", "shape", "values": flat list}
//   interop_saved_model ops                  prints {"op": whether Cohort counts it as TensorFlow's} for all ops
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/graph/op_def.h"
#include "cohort/registration.h"

namespace cohort {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

constexpr int64_t kRows = 6, kFeatures = 4, kClasses = 3;

Tensor Examples() {
  Tensor x(DType::kFloat32, Shape{kRows, kFeatures});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = static_cast<float>((i * 7) % 11) / 5.0f - 1.0f;
  return x;
}

// Two dense layers, a layer normalization, a branch, and a softmax.
estimator::EstimatorSpec Model(const estimator::ModelFnArgs& args) {
  const Output relu = layers::Dense(args.features.front(), 8, {.activation = keras::ActivationFunction("relu")});
  const Output scale = ops::Const(args.graph, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const Output hidden = ops::LayerNorm(relu, scale, scale);
  const auto keep = [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{ops::Identity(in[0])}; };
  const auto halve = [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{in[0] * 0.5f}; };
  const Output limited = ops::If(ops::Greater(ops::Mean(hidden), 0.5f), {hidden}, halve, keep)[0];
  const Output logits = layers::Dense(limited, kClasses, {.name = "logits"});
  const Output probabilities = ops::Softmax(logits);
  estimator::EstimatorSpec spec{.mode = args.mode};
  spec.predictions = {{"labels", ops::ArgMax(logits, 1)}, {"probabilities", probabilities}};
  spec.export_outputs = {{saved_model::kDefaultSignature, spec.predictions}, {"scores", {{"logits", logits}}}};
  if (args.mode == estimator::ModeKeys::kPredict) return spec;
  spec.loss = losses::MeanSquaredError(args.labels.front(), probabilities);
  if (args.mode == estimator::ModeKeys::kEval) return spec;
  train::AdamOptimizer optimizer(0.05);
  spec.train_op = optimizer.Minimize(spec.loss, *ops::GetGlobalStep(args.graph));
  return spec;
}

Json RowsOf(const Tensor& value) {
  Json rows = Json::array();
  const int64_t width = value.num_elements() / value.shape().dim(0);
  const std::vector<float> all = value.ToVector<float>();
  for (int64_t i = 0; i < value.shape().dim(0); ++i) {
    rows.push_back(std::vector<float>(all.begin() + i * width, all.begin() + (i + 1) * width));
  }
  return rows;
}

Json Export(const Arguments& arguments) {
  estimator::Estimator model(Model, {.model_dir = arguments.at(0), .tf_random_seed = 3, .tf_config = ""});
  Tensor y(DType::kFloat32, Shape{kRows, kClasses});
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<float>()[i] = i % (kClasses + 1) == 0 ? 1.0f : 0.0f;
  model.Train([&] { return data::Dataset::FromTensorSlices({Examples(), y}).Repeat().Batch(2); }, {.steps = 30});
  const std::string dir = model.ExportModel(arguments.at(0) + "/export", [](Graph& graph) {
    return std::vector<Output>{ops::Placeholder(graph, DType::kFloat32, Shape{-1, kFeatures}, "x")};
  });
  const saved_model::SavedModel loaded(dir);
  const auto values = loaded.Run({{"x", Examples()}});
  return {{"dir", dir},
          {"x", RowsOf(Examples())},
          {"labels", values.at("labels").ToVector<int64_t>()},
          {"probabilities", RowsOf(values.at("probabilities"))},
          {"logits", RowsOf(loaded.Run({{"x", Examples()}}, "scores").at("logits"))}};
}

// A linear model whose variables are on a parameter server of this process, trained by Adam.
Json SaveSession(const Arguments& arguments) {
  ServerOptions options;
  options.token = "interop-saved-model";
  distribute::LocalCluster cluster({.workers = 1, .ps = 1, .server = options});
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, kFeatures}, "x");
  const DeviceScope scope(graph, "/job:ps/task:0");
  const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
  const ops::Variable w = ops::GetVariable(graph, "linear/w", Shape{kFeatures, kClasses});
  const ops::Variable b(graph, Tensor::Vector<float>({1, 2, 3}), {.name = "linear/b"});
  const Output scores = ops::Softmax(ops::MatMul(x, w) + b);
  train::AdamOptimizer optimizer(0.1);
  Node* train_op = optimizer.Minimize(ops::Mean(ops::Square(scores)), step);
  Node* init = ops::GlobalVariablesInitializer(graph);
  graph.Finalize();
  Session session(graph, cluster.server("worker", 0).Target());
  session.Run({}, {}, {init});
  for (int i = 0; i < 5; ++i) session.Run({{x, Examples()}}, {}, {train_op});
  saved_model::SimpleSave(session, arguments.at(0), {{"x", x}}, {{"scores", scores}});
  const Tensor values = session.Run({{x, Examples()}}, {scores})[0];
  return {{"x", RowsOf(Examples())}, {"scores", RowsOf(values)}};
}

Json RunModel(const Arguments& arguments) {
  std::vector<float> x;
  for (size_t i = 3; i < arguments.size(); ++i) x.push_back(std::stof(arguments[i]));
  const saved_model::SavedModel model(arguments.at(0));
  return model.Run({{"x", Tensor::Vector(x)}}, arguments.at(1)).at(arguments.at(2)).ToVector<float>();
}

Tensor TensorOf(const Json& json) {
  const Shape shape(json.at("shape").get<std::vector<int64_t>>());
  const Json& values = json.at("values");
  switch (DTypeFromName(json.at("dtype").get<std::string>())) {
    case DType::kFloat32: return Tensor::FromValues(values.get<std::vector<float>>(), shape);
    case DType::kFloat64: return Tensor::FromValues(values.get<std::vector<double>>(), shape);
    case DType::kInt32: return Tensor::FromValues(values.get<std::vector<int32_t>>(), shape);
    case DType::kInt64: return Tensor::FromValues(values.get<std::vector<int64_t>>(), shape);
    case DType::kString: return Tensor::FromValues(values.get<std::vector<std::string>>(), shape);
    default: throw InvalidArgumentError("no such dtype: " + json.dump());
  }
}

Json ValuesOf(const Tensor& value) {
  switch (value.dtype()) {
    case DType::kFloat32: return value.ToVector<float>();
    case DType::kFloat64: return value.ToVector<double>();
    case DType::kInt32: return value.ToVector<int32_t>();
    case DType::kInt64: return value.ToVector<int64_t>();
    case DType::kBool: return value.ToVector<bool>();
    case DType::kString: return value.ToVector<std::string>();
    default: throw InvalidArgumentError("no values for " + std::string(DTypeName(value.dtype())));
  }
}

// Runs each request of stdin in one loaded model.
Json Predict(const Arguments& arguments) {
  const saved_model::SavedModel model(arguments.at(0));
  Json answers = Json::array();
  for (const Json& request : Json::parse(std::cin)) {
    std::map<std::string, Tensor> inputs;
    for (const auto& [name, value] : request.at("inputs").items()) inputs[name] = TensorOf(value);
    Json& answer = answers.emplace_back(Json::object());
    for (const auto& [name, value] : model.Run(inputs, request.at("signature").get<std::string>())) {
      answer[name] = {
          {"dtype", DTypeName(value.dtype())}, {"shape", value.shape().dims()}, {"values", ValuesOf(value)}};
    }
  }
  return answers;
}

Json Ops(const Arguments&) {
  Json ops;
  for (const OpDef* op : OpRegistry::Global().All()) ops[op->name()] = saved_model::HasTensorFlowForm(op->name());
  return ops;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  const std::map<std::string, std::function<nlohmann::json(const cohort::Arguments&)>> commands{
      {"export", cohort::Export},
      {"save_session", cohort::SaveSession},
      {"run", cohort::RunModel},
      {"predict", cohort::Predict},
      {"ops", cohort::Ops}};
  try {
    cohort::RegisterAll();
    std::cout << commands.at(argc > 1 ? argv[1] : "")(cohort::Arguments(argv + 2, argv + argc)) << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
