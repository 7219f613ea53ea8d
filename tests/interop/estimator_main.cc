// Reads a JSON list of requests from stdin, and prints a JSON list of answers. A request asks for losses, metrics or
// layers as Estimators use them, for the training of one on TFRecord files, for records, look-ups in partitioned
// variables, or for what checkpoints have. test_estimator.py asks TensorFlow the same.
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/registration.h"

namespace cohort {
namespace {

using Json = nlohmann::json;

Json ListOf(const Tensor& value) {
  return {{"shape", std::vector<int64_t>(value.shape().dims().begin(), value.shape().dims().end())},
          {"values", value.ToVector<float>()}};
}

// A request has tensors as {"shape": [...], "values": [...], "integers": true}, or with "truths".
Tensor TensorOf(const Json& json) {
  const Shape shape(json.at("shape").get<std::vector<int64_t>>());
  const Json& values = json.at("values");
  if (json.value("integers", false)) return Tensor::FromValues(values.get<std::vector<int64_t>>(), shape);
  if (!json.value("truths", false)) return Tensor::FromValues(values.get<std::vector<float>>(), shape);
  Tensor truths(DType::kBool, shape);
  for (size_t i = 0; i < values.size(); ++i) truths.data<bool>()[i] = values[i].get<bool>();
  return truths;
}

ops::Operand WeightsOf(Graph& graph, const Json& request) {
  if (!request.contains("weights")) return 1.0f;
  return ops::Const(graph, TensorOf(request.at("weights")));
}

losses::Reduction ReductionOf(const Json& request) {
  static const std::map<std::string, losses::Reduction> kReductions = {
      {"none", losses::Reduction::kNone},
      {"weighted_sum", losses::Reduction::kSum},
      {"weighted_mean", losses::Reduction::kMean},
      {"weighted_sum_over_batch_size", losses::Reduction::kSumOverBatchSize},
      {"weighted_sum_by_nonzero_weights", losses::Reduction::kSumByNonzeroWeights}};
  return kReductions.at(request.value("reduction", "weighted_sum_by_nonzero_weights"));
}

Output LossOf(const Json& request, Output labels, Output predictions) {
  const std::string name = request.at("loss");
  const ops::Operand weights = WeightsOf(labels.graph(), request);
  const losses::Reduction reduction = ReductionOf(request);
  const losses::LossOptions plain = {.weights = weights, .reduction = reduction};
  const losses::CrossEntropyOptions cross = {
      .weights = weights, .label_smoothing = request.value("label_smoothing", 0.0), .reduction = reduction};
  if (name == "absolute_difference") return losses::AbsoluteDifference(labels, predictions, plain);
  if (name == "mean_squared_error") return losses::MeanSquaredError(labels, predictions, plain);
  if (name == "hinge_loss") return losses::HingeLoss(labels, predictions, plain);
  if (name == "sparse_softmax_cross_entropy") return losses::SparseSoftmaxCrossEntropy(labels, predictions, plain);
  if (name == "softmax_cross_entropy") return losses::SoftmaxCrossEntropy(labels, predictions, cross);
  if (name == "sigmoid_cross_entropy") return losses::SigmoidCrossEntropy(labels, predictions, cross);
  if (name == "huber_loss") {
    return losses::HuberLoss(labels, predictions,
                             {.weights = weights, .delta = request.value("delta", 1.0), .reduction = reduction});
  }
  if (name == "log_loss") {
    return losses::LogLoss(labels, predictions,
                           {.weights = weights, .epsilon = request.value("epsilon", 1e-7), .reduction = reduction});
  }
  throw InvalidArgumentError("unknown loss " + name);
}

// The loss, its gradient by the predictions, and what is in the collections.
Json AnswerLoss(const Json& request) {
  Graph graph;
  const Output labels = ops::Const(graph, TensorOf(request.at("labels")));
  const Output predictions = ops::Const(graph, TensorOf(request.at("predictions")));
  const Output loss = LossOf(request, labels, predictions);
  const Output gradient = ToDense(Gradients({loss}, {predictions})[0]);
  Session session(graph);
  const auto values = session.Run({loss, gradient});
  return {{"loss", ListOf(values[0])}, {"gradient", ListOf(values[1])}, {"losses", losses::GetLosses(graph).size()}};
}

metrics::Metric MetricOf(const Json& request, Output labels, Output predictions, const ops::Operand& weights) {
  const std::string name = request.at("metric");
  if (name == "mean") return metrics::Mean(predictions, weights);
  if (name == "accuracy") return metrics::Accuracy(labels, predictions, weights);
  if (name == "mean_absolute_error") return metrics::MeanAbsoluteError(labels, predictions, weights);
  if (name == "mean_squared_error") return metrics::MeanSquaredError(labels, predictions, weights);
  if (name == "root_mean_squared_error") return metrics::RootMeanSquaredError(labels, predictions, weights);
  if (name == "precision") return metrics::Precision(labels, predictions, weights);
  if (name == "recall") return metrics::Recall(labels, predictions, weights);
  if (name == "auc") {
    static const std::map<std::string, metrics::SummationMethod> kMethods = {
        {"trapezoidal", metrics::SummationMethod::kTrapezoidal},
        {"minoring", metrics::SummationMethod::kMinoring},
        {"majoring", metrics::SummationMethod::kMajoring},
        {"careful_interpolation", metrics::SummationMethod::kCarefulInterpolation}};
    return metrics::Auc(labels, predictions,
                        {.weights = weights,
                         .num_thresholds = request.value("num_thresholds", 200),
                         .curve = request.value("curve", "ROC") == "PR" ? metrics::Curve::kPr : metrics::Curve::kRoc,
                         .summation_method = kMethods.at(request.value("summation_method", "trapezoidal"))});
  }
  const std::vector<float> thresholds = request.at("thresholds");
  if (name == "precision_at_thresholds")
    return metrics::PrecisionAtThresholds(labels, predictions, thresholds, weights);
  if (name == "recall_at_thresholds") return metrics::RecallAtThresholds(labels, predictions, thresholds, weights);
  throw InvalidArgumentError("unknown metric " + name);
}

// The values before and after each batch.
Json AnswerMetric(const Json& request) {
  Graph graph;
  const Json& batches = request.at("batches");
  const auto fed = [&](const char* part) {
    const Tensor first = TensorOf(batches[0].at(part));
    return ops::Placeholder(graph, first.dtype(), first.shape(), part);
  };
  const Output labels = fed("labels"), predictions = fed("predictions");
  const bool weighted = batches[0].contains("weights");
  const Output weights = weighted ? fed("weights") : Output();
  const metrics::Metric metric =
      MetricOf(request, labels, predictions, weighted ? ops::Operand(weights) : ops::Operand(1.0f));
  Session session(graph);
  session.Run(ops::LocalVariablesInitializer(graph));
  Json answer = Json::array({ListOf(session.Run(metric.value))});
  for (const Json& batch : batches) {
    FeedList feeds = {{labels, TensorOf(batch.at("labels"))}, {predictions, TensorOf(batch.at("predictions"))}};
    if (weighted) feeds.emplace_back(weights, TensorOf(batch.at("weights")));
    session.Run(feeds, {}, {metric.update});
    answer.push_back(ListOf(session.Run(metric.value)));
  }
  return answer;
}

// A network of all layers. Dropout has the rate 0, so that the numbers can be compared.
Output Network(Output images, const layers::Training& training) {
  Output x = layers::Conv2D(images, 4, 3, {.padding = "same", .activation = ops::Relu});
  x = layers::BatchNormalization(x, {.momentum = 0.9, .training = training});
  x = layers::MaxPooling2D(x, 2, 2);
  x = layers::Conv2D(x, 6, {3, 2}, {.strides = 2, .use_bias = false, .name = "second"});
  x = layers::AveragePooling2D(x, {2, 1}, 1, {.padding = "same"});
  x = layers::Flatten(x);
  x = layers::Dense(x, 8,
                    {.activation = [](Output y) { return ops::Tanh(y); },
                     .kernel_regularizer = [](Output w) { return 0.01f * ops::L2Loss(w); }});
  x = layers::BatchNormalization(x, {.training = training});
  x = layers::Dropout(x, {.rate = 0.0, .training = training});
  return layers::Dense(x, 3);
}

// Trains the network from values that it saves as DIR/initial, and saves the result as DIR/trained.
Json AnswerLayers(const Json& request) {
  const std::string dir = request.at("dir");
  const Tensor images = TensorOf(request.at("images")), labels = TensorOf(request.at("labels"));
  Graph graph;
  graph.set_seed(3);
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, 8, 8, 3}, "x");
  const Output y = ops::Placeholder(graph, DType::kInt64, Shape{-1}, "y");
  const bool training = request.at("training"), fed = request.at("fed");
  const Output flag = ops::PlaceholderWithDefault(ops::Const(graph, training), Shape{}, "training");
  const Output logits = Network(x, fed ? layers::Training(flag) : layers::Training(training));
  losses::SparseSoftmaxCrossEntropy(y, logits);
  const Output loss = losses::GetTotalLoss(graph);
  Node* train = nullptr;
  {
    const ControlDependencies after(graph, layers::UpdateOps(graph));
    train = train::GradientDescentOptimizer(0.1).Minimize(loss);
  }
  Saver saver(graph);
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  saver.Save(session, dir + "/initial");
  Json answer = {{"losses", Json::array()}, {"variables", Json::array()}};
  for (const VariableInfo* variable : graph.variables()) answer["variables"].push_back(variable->name);
  for (int step = 0; step < request.at("steps").get<int>(); ++step) {
    answer["losses"].push_back(session.Run({{x, images}, {y, labels}}, {loss}, {train})[0].scalar<float>());
  }
  answer["logits"] = ListOf(session.Run({{x, images}, {y, labels}}, {logits})[0]);
  saver.Save(session, dir + "/trained");
  return answer;
}

// Parses {"image_raw": bytes of 4 x 4 x 1 pixels, "label": int64} inside a graph, as old input functions do.
data::Dataset ImagesOf(const std::string& file, data::Compression compression) {
  const data::Dataset parsed = data::ParseExampleDataset(
      data::TFRecordDataset({file}, compression), {{.name = "image_raw", .dtype = DType::kString, .shape = Shape{}},
                                                   {.name = "label", .dtype = DType::kInt64, .shape = Shape{}}});
  return parsed.Map([](Graph&, const std::vector<Output>& in) {
    const Output pixels = ops::Reshape(ops::DecodeRaw(in[0], DType::kUint8), {4, 4, 1});
    return std::vector<Output>{ops::Cast(pixels, DType::kFloat32) * (1.0f / 255) - 0.5f, in[1]};
  });
}

// Trains an Estimator on TFRecords of images, and evaluates it on the same.
Json AnswerRecords(const Json& request) {
  const std::string file = request.at("file");
  const auto model = [](const estimator::ModelFnArgs& args) {
    const bool training = args.mode == estimator::ModeKeys::kTrain;
    Output x = layers::Conv2D(args.features[0], 8, 3, {.padding = "same"});
    x = ops::Relu(layers::BatchNormalization(x, {.momentum = 0.5, .training = training}));
    x = layers::Dropout(layers::Flatten(layers::MaxPooling2D(x, 2, 2)), {.rate = 0.1, .training = training});
    const Output logits = layers::Dense(x, 2);
    const Output classes = ops::ArgMax(logits, 1);
    estimator::EstimatorSpec spec{.mode = args.mode, .predictions = {{"class", classes}}};
    if (args.mode == estimator::ModeKeys::kPredict) return spec;
    spec.loss = losses::SparseSoftmaxCrossEntropy(args.labels[0], logits);
    spec.eval_metric_ops = {{"accuracy", metrics::Accuracy(args.labels[0], classes)},
                            {"recall", metrics::Recall(args.labels[0], classes)},
                            {"auc", metrics::Auc(args.labels[0], ops::Sigmoid(ops::Slice(logits, {0, 1}, {-1, 1}) -
                                                                              ops::Slice(logits, {0, 0}, {-1, 1})))}};
    const ControlDependencies after(args.graph, layers::UpdateOps(args.graph));
    spec.train_op = train::AdamOptimizer(0.01).Minimize(spec.loss, *ops::GetGlobalStep(args.graph));
    return spec;
  };
  estimator::Estimator trained(model, {.model_dir = request.at("dir"), .tf_random_seed = 5, .tf_config = ""});
  const auto input = [&] { return ImagesOf(file, data::Compression::kNone).Repeat(20).Batch(8); };
  trained.Train(input);
  return trained.Evaluate([&] { return ImagesOf(file, data::Compression::kNone).Batch(8); });
}

// Writes two records, whose features have all types, and an empty one.
Json AnswerWriteRecords(const Json& request) {
  const std::map<std::string, data::Compression> kinds = {
      {"", data::Compression::kNone}, {"GZIP", data::Compression::kGzip}, {"ZLIB", data::Compression::kZlib}};
  data::TFRecordWriter writer(request.at("file"), {.compression = kinds.at(request.at("compression"))});
  for (const int64_t i : {1, 2}) {
    train::Example example;
    example.Int64List("ids", {i, -i, int64_t{1} << 40}).FloatList("x", {0.5f * static_cast<float>(i)});
    example.BytesList("image_raw", {std::string("\0\xff", 2), std::string(100'000, static_cast<char>('a' + i))});
    writer.Write(example.SerializeToString());
    writer.Flush();
  }
  writer.Write(train::Example().FloatList("x", {}).SerializeToString());
  writer.Close();
  return {};
}

// Restores a table of 7 rows from a checkpoint, in parts if there are several, and looks up rows.
Json AnswerEmbedding(const Json& request) {
  Graph graph;
  const ops::Variable table = ops::GetVariable(
      graph, "emb", Shape{7, 3}, {.partitioner = distribute::FixedSizePartitioner(request.at("parts").get<int>())});
  const ops::PartitionStrategy strategy =
      request.at("strategy") == "mod" ? ops::PartitionStrategy::kMod : ops::PartitionStrategy::kDiv;
  const Output rows =
      ops::EmbeddingLookup(table, ops::Const(graph, request.at("ids").get<std::vector<int64_t>>()), strategy);
  Saver saver(graph);
  Session session(graph);
  saver.Restore(session, request.at("prefix"));
  return ListOf(session.Run(rows));
}

// What a checkpoint has, and a model whose variables begin with its values under other names.
Json AnswerCheckpoint(const Json& request) {
  const std::string dir = request.at("dir");
  Json shapes = Json::object();
  for (const train::StoredShape& stored : train::ListVariables(dir)) {
    shapes[stored.name] = std::vector<int64_t>(stored.shape.dims().begin(), stored.shape.dims().end());
  }
  Graph graph;
  const ops::Variable table =
      ops::GetVariable(graph, "new/emb", Shape{7, 3}, {.partitioner = distribute::FixedSizePartitioner(2)});
  const ops::Variable bias = ops::GetVariable(graph, "b", Shape{3});
  train::InitFromCheckpoint(graph, dir, {{"/", "new/"}, {"dense/bias", bias}});
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  session.Run(ops::LocalVariablesInitializer(graph));
  const auto values = session.Run({table.value(), bias.value()});
  return {{"shapes", shapes},
          {"emb", ListOf(values[0])},
          {"bias", ListOf(values[1])},
          {"loaded", ListOf(train::LoadVariable(dir, "emb"))}};
}

Json Answer(const Json& request) {
  const std::string kind = request.at("kind");
  if (kind == "loss") return AnswerLoss(request);
  if (kind == "metric") return AnswerMetric(request);
  if (kind == "layers") return AnswerLayers(request);
  if (kind == "write_records") return AnswerWriteRecords(request);
  if (kind == "embedding") return AnswerEmbedding(request);
  if (kind == "checkpoint") return AnswerCheckpoint(request);
  return AnswerRecords(request);
}

}  // namespace
}  // namespace cohort

int main() {
  try {
    cohort::RegisterAll();
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    cohort::Json answers = cohort::Json::array();
    for (const cohort::Json& request : cohort::Json::parse(text)) answers.push_back(cohort::Answer(request));
    std::cout << answers.dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
