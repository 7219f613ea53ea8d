// Reads a JSON list of requests from stdin, and prints a JSON list of answers. A request asks for losses, metrics,
// optimizers or schedules of keras/ on given numbers, or for files that are read and written. test_keras_training.py
// and test_keras_files.py ask the real Keras the same.
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/graph/gradients.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/config.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/optimizers/learning_rate_schedule.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {
namespace {

using Json = nlohmann::json;

// Reads a tensor from {"dtype": "float32", "shape": [..], "values": [..]}.
Tensor TensorOf(const Json& json) {
  const Shape shape(json.at("shape").get<std::vector<int64_t>>());
  const std::string dtype = json.at("dtype");
  const Json& values = json.at("values");
  if (dtype == "int32") return Tensor::FromValues(values.get<std::vector<int32_t>>(), shape);
  if (dtype == "int64") return Tensor::FromValues(values.get<std::vector<int64_t>>(), shape);
  return Tensor::FromValues(values.get<std::vector<float>>(), shape);
}

Json ValuesOf(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat64) return tensor.ToVector<double>();
  if (tensor.dtype() == DType::kInt64) return tensor.ToVector<int64_t>();
  return tensor.ToVector<float>();
}

template <typename T>
void Read(const Json& options, const char* name, T& value) {
  if (options.contains(name)) options.at(name).get_to(value);
}
template <typename T>
void Read(const Json& options, const char* name, std::optional<T>& value) {
  if (options.contains(name)) value = options.at(name).get<T>();
}

Reduction ReductionOf(const Json& options) {
  const std::string name = options.value("reduction", "sum_over_batch_size");
  if (name == "sum") return Reduction::kSum;
  return name == "mean_with_sample_weight" ? Reduction::kMeanWithSampleWeight : Reduction::kSumOverBatchSize;
}

LossPtr LossOf(const std::string& name, const Json& options) {
  if (options.empty()) return LossByName(name);
  if (name == "SparseCategoricalCrossentropy") {
    return SparseCategoricalCrossentropy({options.value("from_logits", false), ReductionOf(options)});
  }
  CrossentropyOptions cross = {options.value("from_logits", false), options.value("label_smoothing", 0.0),
                               ReductionOf(options)};
  if (name == "CategoricalCrossentropy") return CategoricalCrossentropy(cross);
  if (name == "BinaryCrossentropy") return BinaryCrossentropy(cross);
  static const std::map<std::string, LossPtr (*)(const LossOptions&)> kPlain = {
      {"MeanSquaredError", MeanSquaredError},
      {"MeanAbsoluteError", MeanAbsoluteError},
      {"MeanAbsolutePercentageError", MeanAbsolutePercentageError},
      {"MeanSquaredLogarithmicError", MeanSquaredLogarithmicError},
      {"LogCosh", LogCosh},
      {"Poisson", Poisson},
      {"Hinge", Hinge},
      {"SquaredHinge", SquaredHinge},
      {"CategoricalHinge", CategoricalHinge},
      {"CosineSimilarity", CosineSimilarity},
      {"KLDivergence", KLDivergence}};
  if (name == "BinaryFocalCrossentropy") {
    return BinaryFocalCrossentropy({options.value("apply_class_balancing", false), options.value("alpha", 0.25),
                                    options.value("gamma", 2.0), cross.from_logits, cross.label_smoothing,
                                    cross.reduction});
  }
  if (name == "CategoricalFocalCrossentropy") {
    return CategoricalFocalCrossentropy({options.value("alpha", 0.25), options.value("gamma", 2.0), cross.from_logits,
                                         cross.label_smoothing, cross.reduction});
  }
  const auto axis = options.value("axis", std::vector<int64_t>());
  if (name == "Dice") return Dice({cross.reduction, "", axis});
  if (name == "Tversky") {
    return Tversky({options.value("alpha", 0.5), options.value("beta", 0.5), cross.reduction, "", axis});
  }
  if (const auto found = kPlain.find(name); found != kPlain.end()) return found->second({ReductionOf(options)});
  return Huber({options.value("delta", 1.0), ReductionOf(options)});
}

MetricPtr MetricOf(const Json& request, const Shape& y_true, const Shape& y_pred) {
  const std::string name = request.at("name");
  const Json& options = request.at("options");
  if (request.contains("config")) {
    return DeserializeMetric(ConfigValue::FromJson(request.at("config").dump())).Resolve(y_true, y_pred);
  }
  if (options.empty()) return MetricByName(name, y_true, y_pred);
  if (name == "BinaryAccuracy") return BinaryAccuracy("binary_accuracy", options.at("threshold"));
  if (name == "TopKCategoricalAccuracy") return TopKCategoricalAccuracy(options.at("k"));
  if (name == "SparseTopKCategoricalAccuracy") return SparseTopKCategoricalAccuracy(options.at("k"));
  if (name == "Precision" || name == "Recall") {
    ConfusionOptions confusion;
    Read(options, "thresholds", confusion.thresholds);
    if (options.contains("class_id")) confusion.class_id = options.at("class_id").get<int64_t>();
    return name == "Precision" ? Precision(confusion) : Recall(confusion);
  }
  AucOptions auc;
  Read(options, "num_thresholds", auc.num_thresholds);
  Read(options, "from_logits", auc.from_logits);
  Read(options, "thresholds", auc.thresholds);
  if (options.value("curve", "ROC") == "PR") auc.curve = Curve::kPr;
  const std::string method = options.value("summation_method", "interpolation");
  if (method == "minoring") auc.summation_method = SummationMethod::kMinoring;
  if (method == "majoring") auc.summation_method = SummationMethod::kMajoring;
  return AUC(auc);
}

LearningRateSchedulePtr ScheduleOf(const std::string& name, const Json& o) {
  const auto number = [&](const char* key, double fallback = 0.0) { return o.value(key, fallback); };
  if (name == "ExponentialDecay" || name == "InverseTimeDecay") {
    const ExponentialDecayOptions options = {number("initial_learning_rate"), number("decay_steps"),
                                             number("decay_rate"), o.value("staircase", false)};
    return name == "ExponentialDecay" ? ExponentialDecay(options) : InverseTimeDecay(options);
  }
  if (name == "PolynomialDecay") {
    return PolynomialDecay({number("initial_learning_rate"), number("decay_steps"), number("end_learning_rate", 0.0001),
                            number("power", 1.0), o.value("cycle", false)});
  }
  if (name == "CosineDecay") {
    return CosineDecay({number("initial_learning_rate"), number("decay_steps"), number("alpha"),
                        number("warmup_target"), number("warmup_steps")});
  }
  if (name == "CosineDecayRestarts") {
    return CosineDecayRestarts({number("initial_learning_rate"), number("first_decay_steps"), number("t_mul", 2.0),
                                number("m_mul", 1.0), number("alpha")});
  }
  return PiecewiseConstantDecay(o.at("boundaries").get<std::vector<int64_t>>(),
                                o.at("values").get<std::vector<double>>());
}

LearningRate RateOf(const Json& options, double fallback) {
  if (options.contains("schedule")) return ScheduleOf(options.at("schedule"), options.at("schedule_options"));
  return options.value("learning_rate", fallback);
}

template <typename Options>
Options Common(const Json& json) {
  Options options;
  options.learning_rate = RateOf(json, options.learning_rate.value());
  Read(json, "weight_decay", options.weight_decay);
  Read(json, "clipnorm", options.clipnorm);
  Read(json, "clipvalue", options.clipvalue);
  Read(json, "global_clipnorm", options.global_clipnorm);
  Read(json, "use_ema", options.use_ema);
  Read(json, "ema_momentum", options.ema_momentum);
  Read(json, "ema_overwrite_frequency", options.ema_overwrite_frequency);
  Read(json, "loss_scale_factor", options.loss_scale_factor);
  Read(json, "gradient_accumulation_steps", options.gradient_accumulation_steps);
  return options;
}

OptimizerPtr OptimizerOf(const std::string& name, const Json& json) {
  if (json.empty()) return OptimizerByName(name);
  if (name == "SGD") {
    auto options = Common<SGDOptions>(json);
    Read(json, "momentum", options.momentum);
    Read(json, "nesterov", options.nesterov);
    return SGD(options);
  }
  if (name == "Adagrad") {
    auto options = Common<AdagradOptions>(json);
    Read(json, "initial_accumulator_value", options.initial_accumulator_value);
    Read(json, "epsilon", options.epsilon);
    return Adagrad(options);
  }
  if (name == "RMSprop") {
    auto options = Common<RMSpropOptions>(json);
    Read(json, "rho", options.rho);
    Read(json, "momentum", options.momentum);
    Read(json, "epsilon", options.epsilon);
    Read(json, "centered", options.centered);
    return RMSprop(options);
  }
  if (name == "Ftrl") {
    auto options = Common<FtrlOptions>(json);
    Read(json, "learning_rate_power", options.learning_rate_power);
    Read(json, "initial_accumulator_value", options.initial_accumulator_value);
    Read(json, "l1_regularization_strength", options.l1_regularization_strength);
    Read(json, "l2_regularization_strength", options.l2_regularization_strength);
    Read(json, "l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
    Read(json, "beta", options.beta);
    return Ftrl(options);
  }
  if (name == "Nadam" || name == "Adamax" || name == "Lion" || name == "Adadelta") {
    return DeserializeOptimizer(
        SerializedObject("keras.optimizers", name, ConfigValue::FromJson(json.dump()).AsObject()));
  }
  auto options = Common<AdamOptions>(json);
  Read(json, "beta_1", options.beta_1);
  Read(json, "beta_2", options.beta_2);
  Read(json, "epsilon", options.epsilon);
  Read(json, "amsgrad", options.amsgrad);
  return name == "AdamW" ? AdamW(options) : Adam(options);
}

// Adds a placeholder whose batch dimension is unknown, as in a model.
Output Feed(Graph& graph, const Tensor& value, FeedList& feeds) {
  std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
  if (!dims.empty()) dims[0] = -1;
  const Output placeholder = ops::Placeholder(graph, value.dtype(), Shape(dims));
  feeds.emplace_back(placeholder, value);
  return placeholder;
}

// Returns y_pred, after the "activation" if the request has one.
Output Activated(const Json& request, const Output& y_pred) {
  const std::string activation = request.value("activation", "");
  if (activation == "softmax") return ops::Softmax(y_pred);
  return activation == "sigmoid" ? ops::Sigmoid(y_pred) : y_pred;
}

Json AnswerLoss(const Json& request) {
  Graph graph;
  FeedList feeds;
  const Output y_true = Feed(graph, TensorOf(request.at("y_true")), feeds);
  const Output y_pred = Feed(graph, TensorOf(request.at("y_pred")), feeds);
  Output weight;
  if (request.contains("sample_weight")) weight = Feed(graph, TensorOf(request.at("sample_weight")), feeds);
  const LossPtr loss = LossOf(request.at("name"), request.at("options"));
  const LossSums sums = loss->Sums(y_true, Activated(request, y_pred), weight);
  const Output total = sums.weight.valid() ? sums.sum / sums.weight : sums.sum;
  const Output gradient = ToDense(Gradients({total}, {y_pred}).front());
  Session session(graph);
  const std::vector<Tensor> values = session.Run(feeds, {total, gradient});
  return {{"loss", ValuesOf(values[0])[0]}, {"gradient", ValuesOf(values[1])}};
}

Json AnswerMetric(const Json& request) {
  Graph graph;
  FeedList feeds;
  const Json& batches = request.at("batches");
  Tensor first_true = TensorOf(batches[0].at("y_true"));
  const Output y_true = Feed(graph, first_true, feeds);
  const Output y_pred = Feed(graph, TensorOf(batches[0].at("y_pred")), feeds);
  Output weight;
  if (batches[0].contains("sample_weight")) weight = Feed(graph, TensorOf(batches[0].at("sample_weight")), feeds);
  const MetricPtr metric = MetricOf(request, y_true.shape(), y_pred.shape());
  std::vector<ops::Variable> states;
  std::vector<Output> values;
  for (const MetricState& state : metric->StatesFor(y_true.shape(), y_pred.shape())) {
    states.emplace_back(graph, Tensor::Zeros(state.dtype, state.shape), ops::VariableOptions{.name = state.name});
    values.push_back(states.back().Read());
  }
  Node* update = metric->Update(states, y_true, y_pred, weight);
  const Output result = metric->Result(values);
  Node* init = ops::GlobalVariablesInitializer(graph);
  Session session(graph);
  session.Run(init);
  for (const Json& batch : batches) {
    feeds[0].second = TensorOf(batch.at("y_true"));
    feeds[1].second = TensorOf(batch.at("y_pred"));
    if (weight.valid()) feeds[2].second = TensorOf(batch.at("sample_weight"));
    session.Run(feeds, {}, {update});
  }
  return {{"result", ValuesOf(session.Run(result))[0]}, {"name", metric->name()}};
}

Json AnswerOptimizer(const Json& request) {
  Graph graph;
  FeedList feeds;
  std::vector<train::GradientAndVariable> pairs;
  std::vector<Output> weights;
  for (const Json& weight : request.at("weights")) {
    const Tensor value = TensorOf(weight);
    const ops::Variable variable(graph, value, {.name = "weight"});
    const Output gradient = ops::Placeholder(graph, value.dtype(), value.shape());
    feeds.emplace_back(gradient, value);
    pairs.push_back({Gradient(gradient), variable});
    weights.push_back(variable.Read());
  }
  const OptimizerPtr optimizer = OptimizerOf(request.at("name"), request.at("options"));
  const std::unique_ptr<GraphOptimizer> made = optimizer->Make(graph);
  Node* apply = made->Apply(pairs);
  Node* init = ops::GlobalVariablesInitializer(graph);
  std::vector<Output> state;
  for (const ops::Variable& variable : made->variables()) state.push_back(variable.Read());
  Session session(graph);
  session.Run(init);
  for (const Json& gradients : request.at("gradients")) {
    for (size_t i = 0; i < feeds.size(); ++i) feeds[i].second = TensorOf(gradients[i]);
    session.Run(feeds, {}, {apply});
  }
  Json answer = {{"weights", Json::array()}, {"state", Json::array()}};
  for (const Tensor& value : session.Run(weights)) answer["weights"].push_back(ValuesOf(value));
  for (const Tensor& value : session.Run(state)) answer["state"].push_back(ValuesOf(value));
  return answer;
}

Json AnswerSchedule(const Json& request) {
  Graph graph;
  const Output step = ops::Placeholder(graph, DType::kInt64, Shape());
  const Output rate = ScheduleOf(request.at("name"), request.at("options"))->At(step);
  Session session(graph);
  Json rates = Json::array();
  for (int64_t i = 0; i < request.at("steps").get<int64_t>(); ++i) {
    rates.push_back(session.Run({{step, Tensor::Scalar(i)}}, {rate})[0].scalar<float>());
  }
  return {{"rates", rates}};
}

// Reads the weights of a .keras or .weights.h5 file, adds 1 to those of the layers and writes them to another one.
Json AnswerFile(const Json& request) {
  const std::string from = request.at("from"), to = request.at("to");
  const bool whole = request.at("whole");
  ModelArchive archive;
  if (whole) {
    archive = ReadModelArchive(from);
  } else {
    archive.weights = ReadFile(from);
  }
  std::vector<WeightGroup> groups = DecodeWeights(archive.weights, from);
  Json answer = {{"version", archive.keras_version}, {"groups", Json::array()}};
  for (WeightGroup& group : groups) {
    Json values = Json::array();
    for (Tensor& value : group.values) {
      values.push_back({{"dtype", DTypeName(value.dtype())}, {"shape", value.shape().dims()}});
      if (value.dtype() != DType::kFloat32) continue;
      values.back()["values"] = value.ToVector<float>();
      for (int64_t i = 0; group.path != "optimizer" && i < value.num_elements(); ++i) value.data<float>()[i] += 1;
    }
    answer["groups"].push_back({{"path", group.path}, {"name", group.name}, {"values", values}});
  }
  archive.weights = EncodeWeights(groups);
  if (whole) {
    WriteModelArchive(to, archive);
  } else {
    WriteFileAtomically(to, archive.weights);
  }
  return answer;
}

// Reads and writes Keras's form of a loss, metric, optimizer or schedule.
Json AnswerConfig(const Json& request) {
  const std::string what = request.at("what");
  const ConfigValue value = ConfigValue::FromJson(request.at("value").dump());
  ConfigValue again;
  if (what == "loss") {
    again = DeserializeLoss(value)->Serialized();
  } else if (what == "metric") {
    again = DeserializeMetric(value).Serialized();
  } else {
    again = DeserializeOptimizer(value)->Serialized();
  }
  return Json::parse(again.ToJson());
}

Json Answer(const Json& request) {
  const std::string kind = request.at("kind");
  if (kind == "loss") return AnswerLoss(request);
  if (kind == "metric") return AnswerMetric(request);
  if (kind == "optimizer") return AnswerOptimizer(request);
  if (kind == "file") return AnswerFile(request);
  if (kind == "config") return AnswerConfig(request);
  return AnswerSchedule(request);
}

int Main() {
  RegisterAll();
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  Json answers = Json::array();
  for (const Json& request : Json::parse(text)) {
    try {
      answers.push_back(Answer(request));
    } catch (const Error& error) {
      answers.push_back({{"error", error.what()}});
    }
  }
  std::cout << answers << '\n';
  return 0;
}

}  // namespace
}  // namespace cohort::keras

int main() { return cohort::keras::Main(); }
