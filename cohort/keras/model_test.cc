// Models: how they are built, trained, evaluated and used.
#include "cohort/keras/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/readers/datasets.h"
#include "cohort/data/standard_scaler.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/keras/testing/suite_device.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Floats = std::vector<float>;

Tensor FromFloats(const Floats& values, const Shape& shape) { return Tensor::FromValues(values, shape); }
double LogOf(const Logs& logs, const char* name) { return FindLog(logs, name).value_or(-1); }

// y = 3 x - 1.
struct Line {
  Tensor x = Counting(Shape{64, 1}, -1.0f, 1.0f / 32);
  Tensor y = Counting(Shape{64, 1}, -4.0f, 3.0f / 32);
};

const FitOptions kQuiet = {.batch_size = 16, .epochs = 1, .verbose = 0};

TEST(ModelTest, ACompileThatThrowsLeavesTheModelAsItWas) {
  const Line line;
  Sequential model({Input(Shape{1}), Dense(1)});
  model.Compile({.optimizer = SGD({.learning_rate = 0.3}), .loss = "mse"});
  const double first = LogOf(model.TrainOnBatch({line.x, line.y}), "loss");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Compile({.optimizer = "adam", .loss = {"mse", "mae"}});
              }),
              AllOf(HasSubstr("expected one loss"), HasSubstr("got 2")));
  EXPECT_LT(LogOf(model.TrainOnBatch({line.x, line.y}), "loss"), first);
  EXPECT_EQ(model.Iterations(), 2);
}

TEST(ModelTest, ALineIsLearned) {
  const Line line;
  Sequential model({Dense(1)});  // the input shape comes with the data
  EXPECT_FALSE(model.built());
  model.Compile({.optimizer = SGD({.learning_rate = 0.3}), .loss = "mse", .metrics = {"mae"}});
  FitOptions options = kQuiet;
  options.epochs = 60;
  const History history = model.Fit(line.x, line.y, options);
  EXPECT_THAT(history["loss"], SizeIs(60));
  EXPECT_GT(history["loss"].front(), 0.5);
  EXPECT_LT(history["loss"].back(), 1e-6);
  EXPECT_LT(history["mae"].back(), 1e-3);
  const std::vector<Tensor> weights = model.GetWeights();
  EXPECT_NEAR(weights[0].data<float>()[0], 3, 1e-3);
  EXPECT_NEAR(weights[1].data<float>()[0], -1, 1e-3);
  EXPECT_EQ(model.Iterations(), 240);
  EXPECT_NEAR(model.Predict(FromFloats({2}, Shape{1, 1})).data<float>()[0], 5, 1e-2);
}

TEST(ModelTest, LossesAreMeansOverExamplesWithAnUnevenLastBatch) {
  Sequential model({Input(Shape{1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse", .metrics = {"mse"}});
  const Tensor x = Tensor::FromValues(Floats(5, 1.0f), Shape{5, 1});
  const Tensor y = FromFloats({1, 2, 3, 4, 5}, Shape{5, 1});
  FitOptions options = kQuiet;
  options.batch_size = 3;
  EXPECT_NEAR(model.Fit(x, y, options)["loss"][0], 11, 1e-5);
  const Logs logs = model.Evaluate(x, y, {.batch_size = 2, .verbose = 0});
  EXPECT_NEAR(LogOf(logs, "loss"), 11, 1e-5);
  EXPECT_DOUBLE_EQ(LogOf(logs, "mse"), 11);
  // A batch larger than the data is all of the data.
  EXPECT_DOUBLE_EQ(LogOf(model.Evaluate(x, y, {.batch_size = 100, .verbose = 0}), "loss"), 11);
}

TEST(ModelTest, WeightsOfExamplesAndClasses) {
  Sequential model({Input(Shape{1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
  model.Compile(
      {.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse", .metrics = {"mse"}, .weighted_metrics = {"mse"}});
  const Tensor x = Tensor::FromValues(Floats(4, 1.0f), Shape{4, 1});
  const Tensor y = Tensor::FromValues(std::vector<int64_t>{0, 1, 1, 2}, Shape{4});
  FitOptions options = kQuiet;
  options.class_weight = {{1, 10.0}};
  // 0, 10, 10 and 4 over 4 examples; 24 over the weights 1 + 10 + 10 + 1.
  const History history = model.Fit(x, y, options);
  EXPECT_DOUBLE_EQ(history["loss"][0], 6);
  EXPECT_DOUBLE_EQ(history["mse"][0], 1.5);
  EXPECT_NEAR(history["weighted_mse"][0], 24.0 / 22, 1e-6);
  const ModelData weighted(x, y, FromFloats({1, 0, 0, 2}, Shape{4}));
  options.class_weight = {};
  EXPECT_DOUBLE_EQ(model.Fit(weighted, options)["loss"][0], 2);
}

TEST(ModelTest, RegularizersAndLossesOfLayersAreAdded) {
  Sequential model({Input(Shape{1}), Dense(1, {.kernel_initializer = initializers::Constant(3),
                                               .kernel_regularizer = regularizers::L2(0.5),
                                               .bias_regularizer = "l1"})});
  model.Compile({.optimizer = SGD({.learning_rate = 1.0}), .loss = "mse"});
  const Tensor x = FromFloats({0, 0}, Shape{2, 1});
  EXPECT_DOUBLE_EQ(LogOf(model.Evaluate(x, x, {.verbose = 0}), "loss"), 4.5);
  EXPECT_DOUBLE_EQ(LogOf(model.TrainOnBatch({x, x}), "loss"), 4.5);
  EXPECT_EQ(model.GetWeights()[0].data<float>()[0], 0);  // 3 - 2 * 0.5 * 3
}

TEST(ModelTest, FrozenLayersAndTheirLayersKeepTheirWeights) {
  const Line line;
  Sequential model(
      {Input(Shape{1}), Dense(4, {.trainable = false}), BatchNormalization({.trainable = false}), Dense(1)});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(model.TrainableWeightNames(), ElementsAre("dense_1/kernel", "dense_1/bias"));
  const std::vector<Tensor> before = model.GetWeights();
  model.Fit(line.x, line.y, kQuiet);
  const std::vector<Tensor> after = model.GetWeights();
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(before[i].ToVector<float>(), after[i].ToVector<float>()) << i;
  EXPECT_NE(before[6].ToVector<float>(), after[6].ToVector<float>());
}

TEST(ModelTest, MovingStatisticsFollowTheBatches) {
  for (const bool synchronized : {false, true}) {
    Sequential model({Input(Shape{1}), BatchNormalization({.momentum = 0.75, .synchronized = synchronized})});
    model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
    const Tensor x = FromFloats({1, 3, 5, 7}, Shape{4, 1});
    model.TrainOnBatch({x, x});
    const std::vector<Tensor> weights = model.GetWeights();
    EXPECT_NEAR(weights[2].data<float>()[0], 0.25 * 4, 1e-5);         // mean 4
    EXPECT_NEAR(weights[3].data<float>()[0], 0.75 + 0.25 * 5, 1e-5);  // variance 5, by the count
  }
}

TEST(ModelTest, BranchesInputsOutputsAndSharedLayers) {
  const LayerTensor a = Input(Shape{2}, {.name = "a"}), b = Input(Shape{2}, {.name = "b"});
  const LayerRef shared = Dense(2, {.use_bias = false, .name = "shared"});
  const LayerTensor sum = Add()({shared(a), shared(b)});
  const LayerTensor left = Dense(1, {.use_bias = false, .name = "left"})(sum);
  const LayerTensor right = Dense(1, {.use_bias = false, .name = "right"})(Concatenate()({sum, a}));
  Model model({a, b}, {left, right});
  EXPECT_THAT(model.WeightNames(), ElementsAre("shared/kernel", "left/kernel", "right/kernel"));
  const Tensor identity = FromFloats({1, 0, 0, 1}, Shape{2, 2});
  model.SetWeights({identity, FromFloats({1, 1}, Shape{2, 1}), FromFloats({1, 0, 0, 10}, Shape{4, 1})});
  const Tensor xa = FromFloats({1, 2}, Shape{1, 2}), xb = FromFloats({3, 4}, Shape{1, 2});
  const std::vector<Tensor> outputs = model.PredictAll({{xa, xb}, std::vector<Tensor>{}});
  EXPECT_EQ(outputs[0].data<float>()[0], 10);
  EXPECT_EQ(outputs[1].data<float>()[0], 24);
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}),
                 .loss = {"mse", MeanSquaredError()},
                 .loss_weights = {1, 0.5},
                 .metrics = {"mae"}});
  const Tensor zero = FromFloats({0}, Shape{1, 1});
  const Logs logs = model.Evaluate(ModelData({xa, xb}, {zero, zero}), {.verbose = 0});
  EXPECT_DOUBLE_EQ(LogOf(logs, "loss"), 100 + 0.5 * 576);
  EXPECT_DOUBLE_EQ(LogOf(logs, "left_loss"), 100);
  EXPECT_DOUBLE_EQ(LogOf(logs, "right_loss"), 576);
  EXPECT_DOUBLE_EQ(LogOf(logs, "right_mae"), 24);
  // One output alone is trained.
  model.Compile({.optimizer = SGD({.learning_rate = 0.01}), .loss = {LossArgument(), "mse"}});
  model.Fit(ModelData({xa, xb}, {zero}), kQuiet);
  EXPECT_THAT(model.GetWeights()[1].ToVector<float>(), ElementsAre(1, 1));
  EXPECT_NE(model.GetWeights()[2].ToVector<float>(), (Floats{1, 0, 0, 10}));
}

TEST(ModelTest, AModelIsALayer) {
  Sequential inner({Input(Shape{2}), Dense(3), Dense(2)}, {.name = "inner"});
  const LayerTensor x = Input(Shape{2});
  Model outer({x}, {Dense(1)(inner.AsLayer()(x))});
  EXPECT_THAT(outer.WeightNames(), ElementsAre("inner/dense/kernel", "inner/dense/bias", "inner/dense_1/kernel",
                                               "inner/dense_1/bias", "dense/kernel", "dense/bias"));
}

TEST(ModelTest, DatasetsGiveBatches) {
  const Line line;
  const data::Dataset batches = data::Dataset::FromTensorSlices({line.x, line.y}).Batch(10);
  Sequential model({Dense(1)});
  model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
  FitOptions options = kQuiet;
  options.epochs = 2;
  options.validation_data = batches;
  const History history = model.Fit(batches, options);
  EXPECT_EQ(model.Iterations(), 14);
  EXPECT_THAT(history.names(), ElementsAre("loss", "val_loss"));
  EXPECT_THAT(model.PredictAll(batches), ElementsAre(::testing::Property(&Tensor::num_elements, 64)));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Fit(data::Dataset::FromTensorSlices({line.x.Reshaped(Shape{64}), line.y}), kQuiet);
              }),
              HasSubstr("call Batch()"));
}

TEST(ModelTest, StepsPerEpochGoOnWhereTheLastEpochStopped) {
  const Tensor x = Counting(Shape{6, 1});
  const data::Dataset dataset = data::Dataset::FromTensorSlices({x, x}).Batch(1);
  Sequential model({Input(Shape{1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
  FitOptions options = kQuiet;
  options.epochs = 3;
  options.steps_per_epoch = 2;
  EXPECT_THAT(model.Fit(dataset, options)["loss"], ElementsAre(0.5, 6.5, 20.5));
  options.steps_per_epoch = 4;  // the second epoch has two batches left: it warns and stops there
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(model.Fit(dataset, options)["loss"], ElementsAre(3.5, 20.5, 3.5));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("ran out of data after 2 of 4 steps"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Fit(dataset.Repeat(), kQuiet); }),
              HasSubstr("steps_per_epoch"));
}

TEST(ModelTest, ValidationSplitTakesTheLastExamples) {
  Sequential model({Input(Shape{1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
  const Tensor x = FromFloats({0, 1, 2, 3}, Shape{4, 1});
  FitOptions options = kQuiet;
  options.validation_split = 0.25;
  const History history = model.Fit(x, x, options);
  EXPECT_NEAR(history["loss"][0], 5.0 / 3, 1e-6);
  EXPECT_DOUBLE_EQ(history["val_loss"][0], 9);
}

TEST(ModelTest, InputsOfOtherDTypesAndRanks) {
  const data::ImageDataset images = data::GeneratedImages(1, 64, 8);
  Sequential model({Input(Shape{28, 28, 1}), Flatten(), Dense(10, {.activation = "softmax"})});
  model.Compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  const Shape shape{64, 28, 28};
  Tensor wide(DType::kFloat64, shape), ints(DType::kInt32, shape), floats(DType::kFloat32, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const uint8_t value = images.train_images.data<uint8_t>()[i];
    wide.data<double>()[i] = ints.data<int32_t>()[i] = value;
    floats.data<float>()[i] = value;
  }
  const Floats expected = model.Predict(floats.Reshaped(Shape{64, 28, 28, 1})).ToVector<float>();
  for (const Tensor& x : {images.train_images, wide, ints, floats}) {
    EXPECT_EQ(model.Predict(x).ToVector<float>(), expected) << x.dtype();
  }
  model.Fit(images.train_images, images.train_labels, kQuiet);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Predict(Tensor(DType::kFloat32, Shape{4, 28, 27}));
              }),
              AllOf(HasSubstr("[?,28,28,1]"), HasSubstr("[?,28,27]"), HasSubstr("input 0")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Predict(Tensor::Vector(std::vector<std::string>{"a"})); }),
              HasSubstr("string"));
}

TEST(ModelTest, ImagesAreLearned) {
  const data::ImageDataset images = data::GeneratedImages(1, 3000, 500);
  Sequential model({Flatten(), Dense(64, {.activation = "relu"}), Dense(10, {.activation = "softmax"})});
  model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  data::StandardScaler scaler;
  scaler.Fit(images.train_images);
  const Tensor x = scaler.Transform(images.train_images), x_test = scaler.Transform(images.test_images);
  FitOptions options = kQuiet;
  options.epochs = 4;
  options.validation_data = ModelData(x_test, images.test_labels);
  const History history = model.Fit(x, images.train_labels, options);
  EXPECT_GT(history["accuracy"].back(), 0.9);
  EXPECT_GT(history["val_accuracy"].back(), 0.85);
  const Tensor probabilities = model.Predict(x_test);
  EXPECT_EQ(probabilities.shape(), (Shape{500, 10}));
}

TEST(ModelTest, MixedPrecisionKeepsFloatWeights) {
  const data::ImageDataset images = data::GeneratedImages(1, 512, 8);
  Sequential model({Reshape({28, 28, 1}), Conv2D(16, 3, {.activation = "relu"}), BatchNormalization(), MaxPooling2D(4),
                    Flatten(), LayerNormalization(), Dense(10, {.activation = "softmax"})},
                   {.dtype_policy = "mixed_bfloat16"});
  model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
  data::StandardScaler scaler;
  scaler.Fit(images.train_images);
  const FitOptions options = {.batch_size = 16, .epochs = 3, .verbose = 0};
  const History history = model.Fit(scaler.Transform(images.train_images), images.train_labels, options);
  EXPECT_LT(history["loss"].back(), 0.7 * history["loss"].front());
  for (const Tensor& weight : model.GetWeights()) EXPECT_EQ(weight.dtype(), DType::kFloat32);
  EXPECT_EQ(model.Predict(images.train_images).dtype(), DType::kFloat32);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Sequential({}, {.dtype_policy = "float16"}); }),
              HasSubstr("'float16'"));
}

// Gradients replaced by their signs.
void SignDescent(StepContext& step) {
  const std::vector<Output> y_pred = step.Call(step.x());
  const Output loss = step.Loss(y_pred);
  auto gradients = step.Gradients(loss);
  for (auto& pair : gradients) pair.gradient = Gradient(ops::Sign(ToDense(pair.gradient)));
  step.ApplyGradients(gradients);
  step.ReportLoss(loss);
}

TEST(ModelTest, AStepOfOnesOwn) {
  Sequential model({Input(Shape{1}), Dense(1, {.kernel_initializer = "zeros"})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.25}), .loss = "mse", .train_step = SignDescent});
  model.TrainOnBatch({FromFloats({1}, Shape{1, 1}), FromFloats({100}, Shape{1, 1})});
  EXPECT_EQ(model.GetWeights()[0].data<float>()[0], 0.25f);
  EXPECT_EQ(model.GetWeights()[1].data<float>()[0], 0.25f);
}

// A copy is the same model, and outlives the first one.
TEST(ModelTest, CopiesAreOneModel) {
  std::optional<Sequential> first(std::in_place, std::vector<SequentialItem>{Input(Shape{1}), Dense(1)});
  Model copy = *first;
  copy.Compile({.optimizer = SGD({.learning_rate = 0.25}), .loss = "mse"});
  const ModelData data(FromFloats({1}, Shape{1, 1}), FromFloats({100}, Shape{1, 1}));
  first->Fit(data, kQuiet);
  EXPECT_EQ(copy.Iterations(), 1);
  EXPECT_EQ(copy.GetWeights()[0].data<float>()[0], first->GetWeights()[0].data<float>()[0]);
  const std::vector<Model> several = {copy, *first};
  first.reset();
  EXPECT_EQ(several[0].WeightNames(), several[1].WeightNames());
  EXPECT_EQ(copy.Predict(FromFloats({1}, Shape{1, 1})).num_elements(), 1);
}

TEST(ModelTest, DropoutDropsInTrainingAlone) {
  // Behind the dropout each element is 0 or 2, so that its squared distance from 1 is 1.
  const LayerTensor x = Input(Shape{50});
  const LayerTensor dropped = Dropout(0.5)(x);
  Model model({x}, {dropped, Dense(1)(x)});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse", .loss_weights = {1, 0}});
  const Tensor ones = Tensor::FromValues(Floats(100, 1.0f), Shape{2, 50});
  const ModelData data({ones}, {ones, FromFloats({0, 0}, Shape{2, 1})});
  EXPECT_NEAR(LogOf(model.Evaluate(data, {.verbose = 0}), "loss"), 0, 1e-6);
  EXPECT_NEAR(LogOf(model.TrainOnBatch(data), "loss"), 1, 1e-6);
}

// Losses of the batches, in order.
std::vector<double> BatchLosses(Model& model, const ModelData& data, FitOptions options) {
  std::vector<double> losses;
  options.batch_size = 1;
  options.callbacks = {
      LambdaCallback({.on_train_batch_end = [&](int64_t, const BatchLogs& logs) { losses.push_back(logs.loss()); }})};
  model.Fit(data, options);
  return losses;
}

TEST(ModelTest, EachEpochHasItsOrderAlsoOverSeveralFits) {
  const Tensor x = Counting(Shape{20, 1});
  const auto make = [] {
    auto model = std::make_unique<Sequential>(
        std::vector<SequentialItem>{Input(Shape{1}), Dense(1, {.kernel_initializer = "ones"})});
    model->Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
    return model;
  };
  const ModelData data(x, Tensor::Zeros(DType::kFloat32, Shape{20, 1}));
  FitOptions one = kQuiet, two = kQuiet, later = kQuiet;
  two.epochs = 2;
  later.initial_epoch = 1;
  later.epochs = 2;
  const auto together = make(), apart = make(), resumed = make();
  const std::vector<double> both = BatchLosses(*together, data, two);
  ASSERT_THAT(both, SizeIs(40));
  const std::vector<double> first(both.begin(), both.begin() + 20), second(both.begin() + 20, both.end());
  EXPECT_NE(first, second);
  EXPECT_THAT(second, ::testing::UnorderedElementsAreArray(first));
  EXPECT_EQ(BatchLosses(*apart, data, one), first);
  EXPECT_EQ(BatchLosses(*apart, data, one), second);
  EXPECT_EQ(BatchLosses(*resumed, data, later), second);
}

TEST(ModelTest, ValidationHasItsFrequency) {
  const Line line;
  Sequential model({Dense(1)});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  FitOptions options = kQuiet;
  options.epochs = 4;
  options.validation_data = ModelData(line.x, line.y);
  options.validation_freq = 2;
  const History history = model.Fit(line.x, line.y, options);
  EXPECT_TRUE(std::isnan(history["val_loss"][0]));
  EXPECT_FALSE(std::isnan(history["val_loss"][1]));
  EXPECT_TRUE(std::isnan(history["val_loss"][2]));
  EXPECT_FALSE(std::isnan(history["val_loss"][3]));
}

TEST(ModelTest, DatasetsMayCarryWeights) {
  const Tensor x = FromFloats({1, 2}, Shape{2, 1}), y = FromFloats({0, 0}, Shape{2, 1}),
               weights = FromFloats({3, 0}, Shape{2});
  Sequential model({Input(Shape{1}), Dense(1, {.kernel_initializer = "ones"})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
  const data::Dataset batches = data::Dataset::FromTensorSlices({x, y, weights}).Batch(2);
  EXPECT_DOUBLE_EQ(LogOf(model.Evaluate(batches, {.verbose = 0}), "loss"), 1.5);
}

TEST(ModelTest, CallbacksSeeTheModel) {
  const Line line;
  Sequential model({Dense(1)});
  model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
  std::vector<std::string> seen;
  FitOptions options = kQuiet;
  options.epochs = 5;
  options.callbacks = {LambdaCallback({.on_train_begin = [&] { seen.emplace_back("begin"); },
                                       .on_epoch_begin = [&](int epoch) { seen.push_back(StrCat("epoch ", epoch)); },
                                       .on_epoch_end =
                                           [&](int epoch, Logs&) {
                                             model.SetLearningRate(model.GetLearningRate() / 2);
                                             if (epoch == 1) model.StopTraining();
                                           }})};
  EXPECT_THAT(model.Fit(line.x, line.y, options)["loss"], SizeIs(2));
  EXPECT_THAT(seen, ElementsAre("begin", "epoch 0", "epoch 1"));
  EXPECT_FLOAT_EQ(static_cast<float>(model.GetLearningRate()), 0.025f);
}

TEST(ModelTest, CallbacksChangeTheRateOfTheUpdates) {
  const Line line;
  const auto kernel_after = [&](int epochs, const std::vector<CallbackPtr>& callbacks) {
    Sequential model({Input(Shape{1}), Dense(1, {.kernel_initializer = "zeros"})});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
    FitOptions options = kQuiet;
    options.epochs = epochs;
    options.shuffle = false;
    options.callbacks = callbacks;
    model.Fit(line.x, line.y, options);
    return model.GetWeights()[0].data<float>()[0];
  };
  const float one = kernel_after(1, {});
  EXPECT_NE(kernel_after(3, {}), one);
  EXPECT_EQ(kernel_after(3, {LearningRateScheduler([](int epoch, double rate) { return epoch == 0 ? rate : 0; })}),
            one);
  // No loss is below another by so much: the rate is 0 from the third epoch on.
  const float two = kernel_after(2, {});
  EXPECT_EQ(kernel_after(5, {ReduceLROnPlateau({.monitor = "loss", .factor = 0, .patience = 1, .min_delta = 1e6})}),
            two);
}

TEST(ModelTest, EarlyStoppingBringsTheBestWeightsBack) {
  const Line line;
  Sequential model({Input(Shape{1}), Dense(1, {.kernel_initializer = "zeros"})});
  model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
  FitOptions options = kQuiet;
  options.epochs = 10;
  options.validation_data = {line.x, line.y};
  std::vector<float> kernels;
  options.callbacks = {LambdaCallback({.on_epoch_end =
                                           [&](int epoch, Logs&) {
                                             kernels.push_back(model.GetWeights()[0].data<float>()[0]);
                                             // Away from the line from here on.
                                             if (epoch == 1) model.SetLearningRate(-0.1);
                                           }}),
                       EarlyStopping({.patience = 3, .restore_best_weights = true})};
  EXPECT_THAT(model.Fit(line.x, line.y, options)["val_loss"], SizeIs(5));
  EXPECT_NE(kernels.back(), kernels[1]);
  EXPECT_EQ(model.GetWeights()[0].data<float>()[0], kernels[1]);
}

TEST(ModelTest, CompilingAgainKeepsTheWeights) {
  const Line line;
  Sequential model({Dense(1)});
  model.Compile({.optimizer = "adam", .loss = "mse"});
  model.Fit(line.x, line.y, kQuiet);
  const Floats kernel = model.GetWeights()[0].ToVector<float>();
  model.Compile({.optimizer = "adam", .loss = "mae", .metrics = {"mse"}});
  EXPECT_EQ(model.GetWeights()[0].ToVector<float>(), kernel);
  model.Fit(line.x, line.y, kQuiet);
  EXPECT_EQ(model.Iterations(), 4);
}

TEST(ModelTest, TheSameSeedGivesTheSameModel) {
  const Line line;
  const auto run = [&](int64_t seed) {
    Sequential model({Dense(8), Dropout(0.5), Dense(1)}, {.seed = seed});
    model.Compile({.optimizer = "adam", .loss = "mse"});
    FitOptions options = kQuiet;
    options.seed = seed;
    model.Fit(line.x, line.y, options);
    return model.GetWeights()[0].ToVector<float>();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

std::string WithoutTrailingSpaces(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') result.erase(result.find_last_not_of(' ') + 1);
    result += c;
  }
  return result;
}

TEST(ModelTest, Summary) {
  Sequential model({Input(Shape{28, 28, 1}), Conv2D(128, 3, {.padding = "same"}),
                    SeparableConv2D(128, 3, {.padding = "same"}), MaxPooling2D(2), BatchNormalization(), Flatten(),
                    Dense(10)});
  std::ostringstream out;
  model.Summary(out);
  EXPECT_EQ(WithoutTrailingSpaces(out.str()), R"(Model: "sequential"
_________________________________________________________________
Layer (type)                 Output Shape              Param #
=================================================================
conv2d (Conv2D)              (None, 28, 28, 128)       1280
_________________________________________________________________
separable_conv2d (SeparableC (None, 28, 28, 128)       17664
_________________________________________________________________
max_pooling2d (MaxPooling2D) (None, 14, 14, 128)       0
_________________________________________________________________
batch_normalization (BatchNo (None, 14, 14, 128)       512
_________________________________________________________________
flatten (Flatten)            (None, 25088)             0
_________________________________________________________________
dense (Dense)                (None, 10)                250890
=================================================================
Total params: 270,346
Trainable params: 270,090
Non-trainable params: 256
_________________________________________________________________
)");
  EXPECT_THAT(out.str(), HasSubstr("\nconv2d (Conv2D)              (None, 28, 28, 128)       1280      \n"));
  EXPECT_EQ(model.CountParams(), 270346);
}

TEST(ModelTest, SummaryOfBranches) {
  const LayerTensor a = Input(Shape{2}, {.name = "a"});
  const LayerRef shared = Dense(2, {.name = "shared"});
  Model model({a}, {Add({.name = "sum"})({shared(a), shared(a)})});
  std::ostringstream out;
  model.Summary(out);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("Connected to"), HasSubstr("shared (Dense)"), HasSubstr("Total params: 6\n"),
                               HasSubstr("shared[0]")));
}

TEST(ModelTest, WhatIsWrongIsSaid) {
  const Line line;
  Sequential model({Dense(1)});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { model.Fit(line.x, line.y, kQuiet); }),
              HasSubstr("call Compile"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { model.Summary(); }), HasSubstr("input shape"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Compile({}); }), HasSubstr("expected a loss"));
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Fit(line.x, Counting(Shape{63, 1}), kQuiet);
              }),
              AllOf(HasSubstr("64"), HasSubstr("63")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Fit(Tensor(DType::kFloat32, Shape{0, 1}), Tensor(DType::kFloat32, Shape{0, 1}), kQuiet);
              }),
              HasSubstr("at least one example; got data of shape [0,1]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Fit(data::Dataset::FromTensorSlices({line.x, line.y}).Take(0).Batch(2), kQuiet);
              }),
              HasSubstr("the dataset is empty"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Fit(ModelData({line.x}, {line.y, line.y, line.y}), kQuiet);
              }),
              HasSubstr("4 components"));
  FitOptions split = kQuiet;
  split.validation_split = 1.5;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Fit(line.x, line.y, split); }), HasSubstr("got 1.5"));
  model.Fit(line.x, line.y, kQuiet);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.SetWeights({}); }), HasSubstr("expected 2 weights; got 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.SetWeights({line.x, line.x});
              }),
              AllOf(HasSubstr("'dense/kernel'"), HasSubstr("[1,1]"), HasSubstr("[64,1]")));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { model.Add(Dense(1)); }), HasSubstr("before"));
}

// The first batch is looked at by the signal check before any step.
TEST(ModelTest, LabelsOutOfRangeNameLabelEpochAndBatch) {
  FitOptions options = kQuiet;
  options.batch_size = 2;
  options.shuffle = false;
  for (const int batch : {1, 2}) {
    Sequential model({Input(Shape{2}), Dense(3, {.activation = "softmax"})});
    model.Compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
    const Tensor y = Tensor::Vector(batch == 1 ? std::vector<int32_t>{7, 1, 2, 0} : std::vector<int32_t>{0, 1, 2, 7});
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                  model.Fit(Counting(Shape{4, 2}), y, options);
                }),
                AllOf(HasSubstr("7"), HasSubstr(StrCat("(in epoch 1, batch ", batch, ")"))));
  }
}

TEST(ModelTest, ALossThatIsNotANumberIsReportedOnce) {
  Sequential model({Input(Shape{1}), Dense(1)});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  Tensor x = Counting(Shape{4, 1});
  x.data<float>()[0] = NAN;
  FitOptions options = kQuiet;
  options.batch_size = 1;
  options.signal_check = false;
  ::testing::internal::CaptureStderr();
  model.Fit(x, x, options);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, AllOf(HasSubstr("the loss is nan in epoch 1"), HasSubstr("TerminateOnNaN")));
  EXPECT_EQ(text.find("the loss is"), text.rfind("the loss is"));
}

}  // namespace
}  // namespace cohort::keras
