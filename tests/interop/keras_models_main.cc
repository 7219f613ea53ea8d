// Reads a JSON list of trainings from stdin, runs them, and prints the results of each: losses, weights and
// predictions. A training is a model by name or from a file, an optimizer, initial weights and batches.
// test_keras_models.py trains the models of the same names with the real Keras. test_keras_saving.py exchanges models
// with Keras as files.
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing/array_ops_layer.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/registration.h"
#include "tests/interop/keras_models.h"

namespace cohort::keras {
namespace {

using Json = nlohmann::json;

ModelPtr Classifier() {
  return Chain({Input(Shape{8, 8, 1}), Conv2D(6, 3, {.padding = "same", .activation = "tanh"}), MaxPooling2D(2),
                Flatten(), Dense(10, {.activation = "selu"}), Dense(4, {.activation = "softmax"})});
}

ModelPtr Branches() {
  const LayerTensor a = Input(Shape{5}, {.name = "a"}), b = Input(Shape{5}, {.name = "b"});
  const LayerRef shared = Dense(6, {.activation = "tanh", .name = "shared"});
  const LayerTensor left = shared(a), right = shared(b);
  const LayerTensor sum = Add()({left, right});
  const LayerTensor joined = Concatenate()({sum, left, a});
  return std::make_unique<Model>(
      std::vector<LayerTensor>{a, b},
      std::vector<LayerTensor>{Dense(2, {.name = "first"})(joined), Dense(3, {.name = "second"})(sum)});
}

// Returns a model with one normalization of two inputs, whose moving statistics are updated twice in each step.
ModelPtr Siamese() {
  const LayerTensor a = Input(Shape{5}, {.name = "a"}), b = Input(Shape{5}, {.name = "b"});
  const LayerRef shared = Dense(6, {.use_bias = false, .name = "shared"});
  const LayerRef normalization = BatchNormalization({.momentum = 0.5, .name = "normalization"});
  const LayerTensor left = normalization(shared(a)), right = normalization(shared(b));
  return std::make_unique<Model>(std::vector<LayerTensor>{a, b},
                                 std::vector<LayerTensor>{Dense(3, {.name = "end"})(Concatenate()({left, right}))});
}

ModelPtr Separables() {
  const SeparableConv2DOptions options = {.padding = "same", .activation = "selu"};
  return Chain({Input(Shape{8, 8, 1}), Conv2D(6, 3, {.padding = "same", .activation = "selu"}),
                SeparableConv2D(6, 3, options), MaxPooling2D(2), SeparableConv2D(8, 3, options), MaxPooling2D(2),
                Flatten(), Dense(8, {.activation = "selu"}), Dense(4, {.activation = "softmax"})});
}

// A layer as a program would write it.
class Scale final : public Layer {
 public:
  explicit Scale(double by, const std::string& name = "") : Layer("Scale", name), by_(by) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>&) const override {
    return {{.name = "factor", .shape = Shape{}, .initializer = "ones"}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {inputs[0] * ctx.weight("factor") * static_cast<float>(by_)};
  }
  ConfigValue::Object Config() const override { return {{"by", by_}}; }

 private:
  const double by_;
};

ModelPtr Nested() {
  const Sequential chain({Input(Shape{6}), Dense(5, {.activation = "tanh"}), Dense(4)}, {.name = "chain"});
  const LayerTensor a = Input(Shape{4}, {.name = "a"});
  const Model block({a}, {Add()({Dense(4, {.activation = "tanh"})(a), a})}, {.name = "block"});
  const LayerTensor x = Input(Shape{6}, {.name = "x"});
  const LayerRef shared = block.AsLayer();
  return std::make_unique<Model>(std::vector<LayerTensor>{x},
                                 std::vector<LayerTensor>{Dense(3)(shared(shared(chain.AsLayer()(x))))});
}

// The layers of one class have another order in the file than in the program.
ModelPtr Crossed() {
  const LayerTensor x = Input(Shape{5}, {.name = "x"});
  const LayerTensor near = Dense(4, {.activation = "tanh", .name = "near"})(x);
  const LayerTensor far = Dense(4, {.activation = "tanh", .name = "far"})(x);
  const LayerTensor farther = Dense(4, {.activation = "tanh", .name = "farther"})(far);
  return std::make_unique<Model>(std::vector<LayerTensor>{x},
                                 std::vector<LayerTensor>{Add()({near, farther}), Dense(2, {.name = "end"})(far)});
}

// A frozen base, cut before its head and with another: by its layers, and as a layer.
Model FrozenBase() {
  const LayerTensor x = Input(Shape{6}, {.name = "x"});
  const LayerTensor wide =
      Dense(8, {.activation = "tanh", .kernel_regularizer = regularizers::L2(0.1), .name = "base_dense"})(x);
  const LayerTensor norm = BatchNormalization({.momentum = 0.5, .name = "base_norm"})(wide);
  Model base({x}, {Dense(2, {.name = "old_head"})(norm)}, {.name = "base"});
  base.SetTrainable(false);
  return base;
}

ModelPtr Frozen() {
  const Model base = FrozenBase();
  const LayerTensor features = base.GetLayer("base_norm").output();
  return std::make_unique<Model>(base.inputs(), std::vector<LayerTensor>{Dense(3, {.name = "new_head"})(features)});
}

ModelPtr FrozenInside() {
  const LayerTensor x = Input(Shape{6}, {.name = "x"});
  const LayerTensor learned = Dense(6, {.activation = "tanh", .name = "before"})(x);
  const LayerTensor features = FrozenBase().AsLayer()(learned);
  return std::make_unique<Model>(std::vector<LayerTensor>{x},
                                 std::vector<LayerTensor>{Dense(3, {.name = "new_head"})(features)});
}

std::map<std::string, std::function<ModelPtr()>> DenseModels() {
  return {
      {"linear", [] { return Numbers({Input(Shape{6})}); }},
      {"dense",
       [] {
         return Numbers({Input(Shape{6}), Dense(8, {.activation = "tanh"})});
       }},
      {"dense_of_rank_3",
       [] {
         return Numbers({Input(Shape{4, 5}), Dense(6, {.activation = "selu"})});
       }},
      {"activations",
       [] {
         return Numbers({Input(Shape{6}), Dense(8), Activation("softplus"), Dense(8, {.activation = "gelu"}), Dense(8),
                         Activation("softsign"), Dense(8, {.activation = "elu"}), Dense(8, {.activation = "swish"})});
       }},
      {"regularized",
       [] {
         return Numbers({Input(Shape{6}), Dense(8, {.activation = "tanh",
                                                    .kernel_regularizer = regularizers::L2(0.02),
                                                    .bias_regularizer = regularizers::L1L2(0.001, 0.01)})});
       }},
  };
}

std::map<std::string, std::function<ModelPtr()>> ImageModels() {
  return {
      {"conv2d",
       [] {
         return Numbers({Input(Shape{9, 9, 2}),
                         Conv2D(6, 3, {.strides = 2, .padding = "same", .groups = 2, .activation = "selu"}),
                         Conv2D(4, {2, 1}, {.dilation_rate = 2, .activation = "tanh"})});
       }},
      {"depthwise_conv2d",
       [] {
         return Numbers(
             {Input(Shape{7, 7, 2}),
              DepthwiseConv2D(3, {.strides = 2, .padding = "same", .depth_multiplier = 2, .activation = "tanh"}),
              DepthwiseConv2D(2, {.activation = "selu"})});
       }},
      {"separable_conv2d",
       [] {
         return Numbers({Input(Shape{7, 7, 2}),
                         SeparableConv2D(6, 3, {.padding = "same", .depth_multiplier = 2, .activation = "selu"})});
       }},
      {"pools",
       [] {
         return Numbers({Input(Shape{9, 9, 2}), Conv2D(4, 2, {.activation = "tanh"}), MaxPooling2D({2, 1}),
                         Conv2D(6, 2, {.padding = "same", .activation = "tanh"}),
                         AveragePooling2D(3, {.strides = RowsColumns(2), .padding = "same"})});
       }},
      {"global_average_pooling",
       [] {
         return Chain(
             {Input(Shape{6, 6, 2}), Conv2D(8, 3, {.activation = "tanh"}), GlobalAveragePooling2D(), Dense(3)});
       }},
      {"batch_normalization",
       [] {
         return Numbers({Input(Shape{6, 6, 2}), Conv2D(6, 3, {.use_bias = false}),
                         BatchNormalization({.momentum = 0.9}), Activation("tanh"), Flatten(),
                         Dense(6, {.use_bias = false}), BatchNormalization({.momentum = 0.8, .epsilon = 0.01}),
                         Activation("tanh")});
       }},
      {"synchronized_batch_normalization",
       [] {
         return Numbers({Input(Shape{6, 6, 2}), Conv2D(6, 3, {.use_bias = false}),
                         BatchNormalization({.momentum = 0.9, .synchronized = true}), Activation("tanh")});
       }},
      {"layer_normalization",
       [] {
         return Numbers({Input(Shape{5, 6}), Dense(8), LayerNormalization(), Activation("tanh")});
       }},
  };
}

// All layers that put several values together.
ModelPtr Merging() {
  const LayerTensor x = Input(Shape{6}, {.name = "x"});
  const LayerTensor a = Dense(6, {.activation = "tanh", .name = "a"})(x);
  const LayerTensor b = Dense(6, {.activation = "tanh", .name = "b"})(x);
  const LayerTensor c = Dense(6, {.name = "c"})(x);
  const LayerTensor difference = Subtract()({Multiply()({a, b, c}), Maximum()({a, c})});
  const LayerTensor joined = Concatenate()({difference, Average()({a, b, c}), Minimum()({b, c})});
  return std::make_unique<Model>(std::vector<LayerTensor>{x},
                                 std::vector<LayerTensor>{Dense(3, {.name = "end"})(joined)});
}

// Recurrent layers that begin with the last states of others.
ModelPtr RecurrentStates() {
  const LayerTensor x = Input(Shape{5, 4}, {.name = "x"});
  const auto encoded = LSTM(3, {.return_sequences = true, .return_state = true, .name = "encoder"}).Apply({x});
  const LayerTensor sequence = encoded[0], h = encoded[1], c = encoded[2];
  const auto gated = GRU(3, {.return_sequences = true, .return_state = true, .name = "gated"}).Apply({sequence, h});
  const LayerTensor decoded = LSTM(3, {.name = "decoder"})({gated[0], gated[1], c});
  const BidirectionalOptions directions = {.merge_mode = std::nullopt, .name = "directions"};
  const auto both = Bidirectional(SimpleRNN(3, {.name = "both"}), directions).Apply({sequence, h, gated[1]});
  return std::make_unique<Model>(
      std::vector<LayerTensor>{x},
      std::vector<LayerTensor>{Dense(3, {.name = "end"})(Concatenate()({decoded, both[0], both[1]}))});
}

ModelPtr AttentionModel() {
  const LayerTensor x = Input(Shape{5, 4}, {.name = "x"}), y = Input(Shape{3, 6}, {.name = "y"});
  const LayerTensor z = Dense(4, {.activation = "tanh", .name = "z"})(y);
  const LayerTensor own = MultiHeadAttention(2, 3, {.value_dim = 5, .use_causal_mask = true, .name = "own"})({x, x});
  const MultiHeadAttentionOptions options = {
      .use_bias = false, .output_shape = 6, .kernel_regularizer = regularizers::L2(0.01), .name = "other"};
  const LayerTensor other = MultiHeadAttention(3, 2, options)({Dense(4, {.name = "sum"})(own), z, y});
  return std::make_unique<Model>(std::vector<LayerTensor>{x, y},
                                 std::vector<LayerTensor>{Dense(3, {.name = "end"})(Flatten()(other))});
}

// The kinds of attention that have no matrices.
ModelPtr ScoredAttention() {
  const LayerTensor x = Input(Shape{5, 4}, {.name = "x"}), y = Input(Shape{3, 4}, {.name = "y"});
  const LayerTensor a = Dense(4, {.activation = "tanh", .name = "a"})(x);
  const LayerTensor b = Dense(4, {.activation = "tanh", .name = "b"})(y);
  const LayerTensor dot = Attention({.use_scale = true, .name = "dot"})({a, b});
  const LayerTensor concat = Attention({.use_scale = true, .score_mode = "concat", .name = "concat"})({a, b, y});
  const LayerTensor added = AdditiveAttention({.use_causal_mask = true, .name = "added"})({a, a});
  const LayerTensor joined = Concatenate()({dot, concat, added, AdditiveAttention({.use_scale = false})({a, b})});
  return std::make_unique<Model>(std::vector<LayerTensor>{x, y},
                                 std::vector<LayerTensor>{Dense(3, {.name = "end"})(Flatten()(joined))});
}

ModelPtr AttentionDropout() {
  const LayerTensor x = Input(Shape{4, 3}, {.name = "x"});
  const LayerTensor y = MultiHeadAttention(2, 3, {.dropout = 0.2, .seed = 5})({x, x});
  const LayerTensor z = Attention({.dropout = 0.3})({y, x});
  const LayerTensor end = AdditiveAttention({.dropout = 0.1, .seed = 2})({z, x});
  return std::make_unique<Model>(std::vector<LayerTensor>{x}, std::vector<LayerTensor>{Dense(3)(Flatten()(end))});
}

ModelPtr MergedDirections() {
  const LayerRef back = GRU(4, {.return_sequences = true, .go_backwards = true, .name = "e"});
  return Numbers(
      {Input(Shape{5, 4}), Bidirectional(SimpleRNN(4, {.return_sequences = true, .name = "c"}), {.merge_mode = "mul"}),
       Bidirectional(LSTM(4, {.return_sequences = true, .name = "d"}), {.merge_mode = "ave", .backward_layer = back})});
}

ModelPtr ModelInEachStep() {
  const Sequential step({Input(Shape{4}), Dense(5, {.activation = "tanh"}), Dense(3)}, {.name = "step"});
  return Numbers({Input(Shape{3, 4}), TimeDistributed(step.AsLayer())});
}

ModelPtr MixedRecurrent() {
  const std::vector<SequentialItem> items = {
      Input(Shape{4, 3}), Bidirectional(LSTM(4, {.return_sequences = true, .name = "a"})), GRU(4), Dense(3)};
  return std::make_unique<Sequential>(items, ModelOptions{.dtype_policy = "mixed_bfloat16"});
}

std::map<std::string, std::function<ModelPtr()>> SequenceModels() {
  return {
      {"lstm",
       [] {
         return Numbers({Input(Shape{5, 4}),
                         LSTM(6, {.recurrent_regularizer = regularizers::L2(0.01), .return_sequences = true}),
                         LSTM(5, {.activation = "softsign",
                                  .recurrent_activation = "hard_sigmoid",
                                  .unit_forget_bias = false,
                                  .return_sequences = true,
                                  .go_backwards = true})});
       }},
      {"gru",
       [] {
         return Numbers({Input(Shape{5, 4}), GRU(6, {.return_sequences = true, .go_backwards = true}),
                         GRU(5, {.return_sequences = true, .reset_after = false}), GRU(4, {.use_bias = false})});
       }},
      {"simple_rnn",
       [] {
         return Numbers({Input(Shape{5, 4}), SimpleRNN(6, {.return_sequences = true}),
                         SimpleRNN(5, {.activation = "softsign", .use_bias = false})});
       }},
      {"one_step",
       [] {
         return Chain(
             {Input(Shape{1, 4}), GRU(3, {.return_sequences = true}), Bidirectional(LSTM(3, {.name = "a"})), Dense(3)});
       }},
      {"recurrent_states", RecurrentStates},
      {"bidirectional",
       [] {
         return Numbers({Input(Shape{5, 4}), Bidirectional(LSTM(4, {.return_sequences = true, .name = "a"})),
                         Bidirectional(GRU(4, {.return_sequences = true, .name = "b"}), {.merge_mode = "sum"})});
       }},
      {"merged_directions", MergedDirections},
      {"time_distributed",
       [] {
         return Numbers({Input(Shape{3, 5, 5, 2}), TimeDistributed(Conv2D(4, 3, {.activation = "tanh", .name = "a"})),
                         TimeDistributed(Flatten()), TimeDistributed(Dense(5, {.activation = "tanh", .name = "b"})),
                         SimpleRNN(4)});
       }},
      {"attention", AttentionModel},
      {"scored_attention", ScoredAttention},
      {"attention_dropout", AttentionDropout},
      {"model_in_each_step", ModelInEachStep},
      {"recurrent_dropout",
       [] {
         return Chain({Input(Shape{4, 3}),
                       LSTM(3, {.dropout = 0.2, .recurrent_dropout = 0.3, .seed = 4, .return_sequences = true}),
                       GRU(3, {.dropout = 0.2, .return_sequences = true}), SimpleRNN(3, {.recurrent_dropout = 0.1}),
                       Dense(3)});
       }},
      {"mixed_recurrent", MixedRecurrent},
  };
}

std::map<std::string, std::function<ModelPtr()>> ElementAndShapeModels() {
  return {
      {"merging", Merging},
      {"rectifiers",
       [] {
         return Numbers({Input(Shape{6}), Dense(8), ReLU(), Dense(8),
                         ReLU({.max_value = 1.5, .negative_slope = 0.1, .threshold = 0.25}), Dense(8), LeakyReLU(),
                         Dense(8), ReLU({.negative_slope = 0.2})});
       }},
      {"softmax_layers",
       [] {
         return Numbers({Input(Shape{4, 6}), Dense(8, {.use_bias = false}), Softmax({.axis = 1}), Permute({2, 1}),
                         Dense(6, {.activation = "tanh"}), Softmax()});
       }},
      {"padded_images",
       [] {
         return Numbers({Input(Shape{5, 5, 2}),
                         Rescaling(std::vector<double>{0.5, 2}, {.offset = std::vector<double>{0.1, -0.2}}),
                         ZeroPadding2D({{1, 2}, {0, 1}}), Conv2D(4, 3, {.strides = 2, .activation = "tanh"}),
                         ZeroPadding2D(), Rescaling(1.5, {.offset = 0.25}), Conv2D(4, 3, {.activation = "tanh"})});
       }},
      {"global_max_pooling",
       [] {
         return Chain({Input(Shape{6, 6, 2}), Conv2D(8, 3, {.activation = "tanh"}), GlobalMaxPooling2D(), Dense(3)});
       }},
      {"global_average_pooling_1d",
       [] {
         return Chain({Input(Shape{6}, {.dtype = DType::kInt32}), Embedding(12, 4), GlobalAveragePooling1D(),
                       Dense(8, {.activation = "tanh"}), Dense(3)});
       }},
  };
}

std::map<std::string, std::function<ModelPtr()>> OtherModels() {
  return {
      {"embedding",
       [] {
         return Numbers({Input(Shape{6}, {.dtype = DType::kInt32}), Embedding(12, 4), Reshape({3, 8}),
                         Dense(6, {.activation = "tanh"})});
       }},
      {"branches", Branches},
      {"siamese", Siamese},
      {"classifier", Classifier},
      {"separables", Separables},
      {"dropout",
       [] {
         return Numbers({Input(Shape{6}), Dropout(0.25), Dense(8, {.activation = "relu"}), Dropout(0.5, {.seed = 3})});
       }},
      {"own_layer",
       [] {
         return Numbers(
             {Input(Shape{6}), Dense(4, {.activation = "tanh"}), MakeLayer<Scale>(0.5), MakeLayer<Scale>(2)});
       }},
      {"mixed",
       [] {
         const std::vector<SequentialItem> items = {Input(Shape{6, 6, 2}),
                                                    Conv2D(8, 3, {.activation = "tanh"}),
                                                    BatchNormalization(),
                                                    Flatten(),
                                                    Dense(8, {.activation = "tanh"}),
                                                    Dense(3)};
         return std::make_unique<Sequential>(items, ModelOptions{.dtype_policy = "mixed_bfloat16"});
       }},
      // This model is not in Keras. It is for ONNX.
      {"array_ops",
       [] {
         return Chain({Input(Shape{4, 6}), MakeLayer<ArrayOps>(), Dense(3)});
       }},
      {"nested", Nested},
      {"crossed", Crossed},
      {"frozen", Frozen},
      {"frozen_inside", FrozenInside},
  };
}

const std::map<std::string, std::function<ModelPtr()>>& Models() {
  static const std::map<std::string, std::function<ModelPtr()>> models = [] {
    auto all = DenseModels();
    all.merge(ImageModels());
    all.merge(ElementAndShapeModels());
    all.merge(VisionModels());
    all.merge(MaskModels());
    all.merge(SequenceModels());
    all.merge(OtherModels());
    return all;
  }();
  return models;
}

OptimizerPtr OptimizerOf(const std::string& name, double rate) {
  if (name == "sgd") return SGD({.learning_rate = rate});
  if (name == "momentum") return SGD({.learning_rate = rate, .momentum = 0.9});
  if (name == "nesterov") return SGD({.learning_rate = rate, .momentum = 0.9, .nesterov = true});
  if (name == "adagrad") return Adagrad({.learning_rate = rate});
  if (name == "adam") return Adam({.learning_rate = rate, .epsilon = 1e-3});
  if (name == "adamw") return AdamW({.learning_rate = rate, .epsilon = 1e-3});
  if (name == "rmsprop") return RMSprop({.learning_rate = rate, .epsilon = 1e-3});
  if (name == "ftrl") return Ftrl({.learning_rate = rate});
  if (name == "nadam") return Nadam({.learning_rate = rate, .epsilon = 1e-3});
  if (name == "adamax") return Adamax({.learning_rate = rate, .epsilon = 1e-3});
  if (name == "adadelta") return Adadelta({.learning_rate = rate, .epsilon = 1e-3});
  if (name == "averaging") {
    return Adam(
        {.learning_rate = rate, .epsilon = 1e-3, .use_ema = true, .ema_momentum = 0.8, .ema_overwrite_frequency = 4});
  }
  if (name == "summing") {
    return SGD({.learning_rate = rate,
                .momentum = 0.9,
                .use_ema = true,
                .ema_momentum = 0.9,
                .gradient_accumulation_steps = 2});
  }
  throw InvalidArgumentError("no such optimizer: " + name);
}

Tensor TensorOf(const Json& json) {
  const Shape shape(json.at("shape").get<std::vector<int64_t>>());
  if (json.at("dtype") == "int32") return Tensor::FromValues(json.at("values").get<std::vector<int32_t>>(), shape);
  return Tensor::FromValues(json.at("values").get<std::vector<float>>(), shape);
}

std::vector<Tensor> TensorsOf(const Json& json) {
  std::vector<Tensor> tensors;
  for (const Json& tensor : json) tensors.push_back(TensorOf(tensor));
  return tensors;
}

LoadOptions WithOwnLayers() {
  return {.custom_layers = {{"Scale", [](const ConfigValue& config) {
                               return MakeLayer<Scale>(config.At("by").AsDouble(), config.At("name").AsString());
                             }}}};
}

ModelPtr ModelOf(const Json& request) {
  if (request.contains("load")) return std::make_unique<Model>(LoadModel(request.at("load"), WithOwnLayers()));
  ModelPtr model = Models().at(request.at("model"))();
  CompileOptions options;
  options.optimizer = OptimizerOf(request.at("optimizer"), request.at("learning_rate"));
  options.loss = {LossByName(request.at("loss"))};
  if (request.contains("loss_weights")) options.loss_weights = request.at("loss_weights").get<std::vector<double>>();
  model->Compile(options);
  if (request.contains("weights")) {
    std::vector<Tensor> weights;
    for (const std::string& name : model->WeightNames()) weights.push_back(TensorOf(request.at("weights").at(name)));
    model->SetWeights(weights);
  }
  return model;
}

// Runs `steps` steps, beginning with batch `first`. Returns their losses.
Json Steps(Model& model, const Json& batches, int first, int steps) {
  Json losses = Json::array();
  for (int step = first; step < first + steps; ++step) {
    const Json& batch = batches[static_cast<size_t>(step) % batches.size()];
    model.ResetMetrics();
    const Logs logs = model.TrainOnBatch(ModelData(TensorsOf(batch.at("x")), TensorsOf(batch.at("y"))));
    losses.push_back(logs[0].second);
  }
  return losses;
}

Json Predictions(Model& model, const Json& batch) {
  Json predictions = Json::array();
  for (const Tensor& output : model.PredictAll(ModelData(TensorsOf(batch.at("x")), std::vector<Tensor>{}))) {
    predictions.push_back(output.ToVector<float>());
  }
  return predictions;
}

// Fits the model to the first batch of the request, cut into batches of 8, and validates it on the second one. Returns
// the losses of the validations. "swap" is whether the callback SwapEMAWeights swaps on epochs; null: there is none.
Json FitAndValidate(Model& model, const Json& request) {
  const auto data = [&](size_t i) {
    const Json& batch = request.at("batches")[i];
    return ModelData(TensorsOf(batch.at("x")), TensorsOf(batch.at("y")));
  };
  FitOptions options = {.batch_size = 8, .epochs = request.at("epochs"), .verbose = 0, .shuffle = false};
  options.validation_data = data(1);
  if (!request.at("swap").is_null()) options.callbacks = {SwapEMAWeights(request.at("swap").get<bool>())};
  return model.Fit(data(0), options)["val_loss"];
}

Json Train(const Json& request) {
  const ModelPtr model = ModelOf(request);
  const Json& batches = request.at("batches");
  const int steps = request.at("steps");
  const Json losses = request.contains("epochs") ? FitAndValidate(*model, request) : Steps(*model, batches, 0, steps);
  const Json predictions = Predictions(*model, batches[0]);
  if (request.contains("save")) model->Save(request.at("save"));
  if (request.contains("onnx")) model->ExportOnnx(request.at("onnx"));
  if (request.contains("saved_model")) model->ExportSavedModel(request.at("saved_model"));
  const Json more = Steps(*model, batches, steps, request.value("more", 0));
  Json final = Json::object();
  const std::vector<Tensor> trained = model->GetWeights();
  for (size_t i = 0; i < trained.size(); ++i) final[model->WeightNames()[i]] = trained[i].ToVector<float>();
  return {{"losses", losses},
          {"more", more},
          {"weights", final},
          {"trainable", model->TrainableWeightNames()},
          {"predictions", predictions}};
}

int Main() {
  RegisterAll();
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  Json answers = Json::array();
  for (const Json& request : Json::parse(text)) {
    try {
      answers.push_back(Train(request));
    } catch (const std::exception& error) {
      answers.push_back({{"error", error.what()}});
    }
  }
  std::cout << answers << '\n';
  return 0;
}

}  // namespace
}  // namespace cohort::keras

int main() { return cohort::keras::Main(); }
