// Data that a model cannot be trained on, and data at the border of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FitInputTest : public ::testing::Test {
 protected:
  FitInputTest() {
    model.Compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  }
  static Tensor Labels(const std::vector<int32_t>& labels) { return Tensor::Vector(labels); }
  std::string Refused(const Tensor& x, const Tensor& y) {
    return MessageOf<InvalidArgumentError>([&] { model.Fit(x, y, quiet); });
  }

  Sequential model{{Input(Shape{2}), Dense(3, {.activation = "softmax"})}};
  FitOptions quiet = {.batch_size = 4, .verbose = 0};
};

TEST_F(FitInputTest, ShapesThatDoNotFitNameBoth) {
  EXPECT_THAT(Refused(Counting(Shape{4, 3}), Labels({0, 1, 2, 0})),
              AllOf(HasSubstr("[?,2]"), HasSubstr("[?,3]"), HasSubstr("input 0")));
  EXPECT_THAT(Refused(Counting(Shape{4, 2, 2}), Labels({0, 1, 2, 0})), HasSubstr("[?,2,2]"));
  EXPECT_THAT(Refused(Counting(Shape{4, 2}), Counting(Shape{4, 3})), HasSubstr("[?,3]"));
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(Refused(Counting(Shape{4, 2}), Counting(Shape{4, 2})), AllOf(HasSubstr("[?,2]"), HasSubstr("[?,3]")));
}

TEST_F(FitInputTest, DTypesThatAreNoNumbers) {
  const Tensor words = Tensor::Vector(std::vector<std::string>{"a", "b"});
  EXPECT_THAT(Refused(words, Labels({0, 1})), HasSubstr("string"));
  EXPECT_THAT(Refused(Counting(Shape{2, 2}), words), AllOf(HasSubstr("targets"), HasSubstr("string")));
}

// What scikit-learn's scaler and the files of images give to guide 004: float64 images and uint8 labels. They train as
// float32 images and int32 labels do.
TEST(FitDTypesTest, Float64ImagesWithUint8LabelsTrainAsFloat32WithInt32) {
  std::vector<double> doubles;
  std::vector<float> floats;
  for (int i = 0; i < 16; ++i) {
    floats.push_back(static_cast<float>(i % 5) - 2);
    doubles.push_back(floats.back());
  }
  const auto train = [](const Tensor& x, const Tensor& y) {
    Sequential model(
        {Input(Shape{2, 2, 1}), Conv2D(3, 2, {.activation = "selu"}), Flatten(), Dense(3, {.activation = "softmax"})},
        {.seed = 3});
    model.Compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    const data::Dataset batches = data::Dataset::FromTensorSlices({x, y}).Batch(2);
    const History history = model.Fit(batches, {.epochs = 3, .verbose = 0, .validation_data = batches});
    EXPECT_EQ(history["val_accuracy"].size(), 3u);
    return history["loss"];
  };
  const auto expected = train(Tensor::FromValues(floats, Shape{4, 2, 2, 1}), Tensor::Vector<int32_t>({0, 1, 2, 0}));
  EXPECT_LT(expected.back(), expected.front());
  EXPECT_EQ(train(Tensor::FromValues(doubles, Shape{4, 2, 2, 1}), Tensor::Vector<uint8_t>({0, 1, 2, 0})), expected);
}

TEST_F(FitInputTest, NegativeLabels) {
  EXPECT_THAT(Refused(Counting(Shape{2, 2}), Labels({0, -1})), AllOf(HasSubstr("-1"), HasSubstr("labels[1]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Evaluate(Counting(Shape{2, 2}), Labels({0, 3}), {.verbose = 0});
              }),
              AllOf(HasSubstr("3"), HasSubstr("Evaluate")));
}

TEST_F(FitInputTest, AHintToShardIsReplacedWhereThereIsOneProcess) {
  const data::Dataset hinted = data::Dataset::FromTensorSlices({Counting(Shape{5, 2}), Labels({0, 1, 2, 0, 1})})
                                   .Shard(data::kShardHint, data::kShardHint)
                                   .Batch(2);
  quiet.auto_shard = data::AutoShardPolicy::kHint;
  model.Fit(hinted, quiet);
  EXPECT_EQ(model.Iterations(), 3);
}

TEST_F(FitInputTest, ABatchLargerThanTheDataIsAllOfIt) {
  quiet.batch_size = 1000;
  const History history = model.Fit(Counting(Shape{5, 2}), Labels({0, 1, 2, 0, 1}), quiet);
  EXPECT_EQ(model.Iterations(), 1);
  EXPECT_TRUE(std::isfinite(history["loss"][0]));
}

TEST_F(FitInputTest, WaitingForDataIsMeasuredEpochByEpoch) {
  static constexpr std::chrono::milliseconds kTimeOfABatch{20};
  const data::Dataset slow =
      data::Dataset::FromTensorSlices({Counting(Shape{12, 2}), Tensor::Zeros(DType::kInt64, Shape{12})})
          .Batch(4)
          .Map(
              [](const std::vector<Tensor>& element) {
                std::this_thread::sleep_for(kTimeOfABatch);
                return element;
              },
              {{DType::kFloat32, Shape{Shape::kUnknownDim, 2}}, {DType::kInt64, Shape{Shape::kUnknownDim}}});
  quiet.epochs = 2;
  const auto begin = std::chrono::steady_clock::now();
  const History history = model.Fit(slow, quiet);
  const auto all = std::chrono::steady_clock::now() - begin;
  const std::vector<std::chrono::nanoseconds>& waits = history.data_waits();
  ASSERT_EQ(waits.size(), 2);
  // Three batches of the first epoch and of the second one, whose first batch nothing has prepared; steps take some of
  // the time of the others.
  EXPECT_GE(waits[0], kTimeOfABatch);
  EXPECT_GE(waits[1], kTimeOfABatch);
  EXPECT_LT(waits[0] + waits[1], all);
}

TEST_F(FitInputTest, StepsBeyondTheDataAreAWarning) {
  quiet.steps_per_epoch = 5;
  quiet.epochs = 2;
  ::testing::internal::CaptureStderr();
  model.Fit(Counting(Shape{12, 2}), Tensor::Zeros(DType::kInt32, Shape{12}), quiet);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("ran out of data after 3 of 5 steps"), HasSubstr("Repeat()")));
  EXPECT_EQ(model.Iterations(), 6);
}

TEST_F(FitInputTest, ALossThatIsNotANumberEndsTrainingWhereThatIsAskedFor) {
  Tensor x = Counting(Shape{8, 2});
  x.data<float>()[9] = NAN;  // in the second batch
  quiet.shuffle = false;
  quiet.epochs = 3;
  quiet.signal_check = false;
  quiet.callbacks = {TerminateOnNaN()};
  ::testing::internal::CaptureStderr();
  model.Fit(x, Tensor::Zeros(DType::kInt32, Shape{8}), quiet);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("epoch 1, batch 2"));
  EXPECT_EQ(model.Iterations(), 2);
}

}  // namespace
}  // namespace cohort::keras
