// Predictor: outputs equal to Model::Predict's, from several threads, and errors that name the input.
#include "cohort/keras/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

template <typename E, typename Call, typename Matcher>
void ExpectError(const Call& call, const Matcher& matcher) {
  EXPECT_THAT(MessageOf<E>(call), matcher);
}

Sequential Classifier() {
  RegisterAll();
  Sequential model({Input(Shape{3}, {.name = "features"}), Dense(16, {.activation = "tanh"}), BatchNormalization(),
                    Dropout(0.5), Dense(4, {.activation = "softmax", .name = "classes"})},
                   {.name = "classifier", .seed = 3});
  model.Compile({.optimizer = "adam", .loss = "mse"});
  for (int i = 0; i < 3; ++i) model.TrainOnBatch({Counting(Shape{8, 3}, -1, 0.125f), Counting(Shape{8, 4}, 0, 0.01f)});
  return model;
}

// Two inputs, of which one is of integers, and two outputs.
Model TwoByTwo() {
  RegisterAll();
  const LayerTensor word = Input(Shape{2}, {.dtype = DType::kInt64, .name = "word"});
  const LayerTensor x = Input(Shape{3}, {.name = "x"});
  const LayerTensor both = Concatenate()({Flatten()(Embedding(10, 4)(word)), x});
  return Model({word, x}, {Dense(2, {.name = "left"})(both), Dense(1, {.name = "right"})(both)}, {.name = "pair"});
}

Tensor Words(int64_t examples) {
  Tensor words(DType::kInt64, Shape{examples, 2});
  for (int64_t i = 0; i < words.num_elements(); ++i) words.data<int64_t>()[i] = i % 10;
  return words;
}

class PredictorFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder / name; }
  const testing::TempFolder folder;
};

TEST_F(PredictorFileTest, EightThreadsGetWhatTheModelPredicts) {
  Sequential model = Classifier();
  model.Save(Path("classifier.keras"));
  const Predictor loaded = Predictor::Load(Path("classifier.keras"), {.session = {.intra_op_parallelism_threads = 1}});
  const Predictor copied(model);
  constexpr int kThreads = 8, kCalls = 200;
  const auto x = [](int thread) { return Counting(Shape{thread + 1, 3}, -0.5f, 0.0625f * static_cast<float>(thread)); };
  std::vector<Floats> expected;
  for (int thread = 0; thread < kThreads; ++thread) expected.push_back(model.Predict(x(thread)).ToVector<float>());
  std::vector<int> wrong(kThreads, 0);
  std::vector<Status> outcomes(kThreads);
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const auto index = static_cast<size_t>(thread);
      start.arrive_and_wait();
      try {
        for (int call = 0; call < kCalls; ++call) {
          const Tensor y = (call % 2 == 0 ? loaded : copied).Predict(x(thread));
          wrong[index] += y.ToVector<float>() == expected[index] ? 0 : 1;
        }
      } catch (...) {
        outcomes[index] = Status::FromCurrentException();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t thread = 0; thread < kThreads; ++thread) {
    EXPECT_TRUE(outcomes[thread].ok()) << outcomes[thread].ToString();
    EXPECT_EQ(wrong[thread], 0) << "thread " << thread;
  }
}

TEST_F(PredictorFileTest, HasNothingOfTraining) {
  Sequential model = Classifier();
  model.Save(Path("trained.keras"));
  const Predictor loaded = Predictor::Load(Path("trained.keras"));
  ASSERT_EQ(loaded.inputs().size(), 1u);
  EXPECT_EQ(loaded.name(), "classifier");
  EXPECT_EQ(loaded.inputs()[0].name, "features");
  EXPECT_EQ(loaded.inputs()[0].dtype, DType::kFloat32);
  EXPECT_EQ(loaded.inputs()[0].shape, (Shape{-1, 3}));
  EXPECT_EQ(loaded.outputs()[0].name, "classes");
  EXPECT_EQ(loaded.outputs()[0].shape, (Shape{-1, 4}));
  // The weights alone: no variable of the optimizer is there.
  EXPECT_EQ(loaded.graph().variables().size(), model.GetWeights().size());
}

TEST(PredictorTest, TrainingTheModelDoesNotChangeIt) {
  Sequential model = Classifier();
  const Predictor predictor(model);
  const Tensor x = Counting(Shape{2, 3}, -1, 0.25f);
  const Floats before = model.Predict(x).ToVector<float>();
  model.TrainOnBatch({Counting(Shape{8, 3}), Counting(Shape{8, 4})});
  EXPECT_NE(model.Predict(x).ToVector<float>(), before);
  EXPECT_EQ(predictor.Predict(x).ToVector<float>(), before);
}

TEST(PredictorTest, ACopyLivesOnWithoutTheModelAndTheFirstHandle) {
  const Tensor x = Counting(Shape{2, 3});
  std::optional<Predictor> first;
  Floats expected;
  {
    Sequential model = Classifier();
    expected = model.Predict(x).ToVector<float>();
    first.emplace(model);
  }
  const Predictor second = *first;
  first.reset();
  EXPECT_EQ(second.Predict(x).ToVector<float>(), expected);
}

TEST(PredictorTest, SeveralInputsAndOutputsByPlaceAndByName) {
  Model model = TwoByTwo();
  const Predictor predictor(model);
  const Tensor words = Words(5), x = Counting(Shape{5, 3});
  const std::vector<Tensor> expected = model.PredictAll(ModelData({words, x}, std::vector<Tensor>{}));
  const std::vector<Tensor> by_place = predictor.PredictAll({words, x});
  const std::map<std::string, Tensor> by_name = predictor.PredictNamed({{"x", x}, {"word", words}});
  ASSERT_EQ(by_place.size(), 2u);
  ASSERT_EQ(by_name.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(by_place[i].ToVector<float>(), expected[i].ToVector<float>());
  EXPECT_EQ(by_name.at("left").ToVector<float>(), expected[0].ToVector<float>());
  EXPECT_EQ(by_name.at("right").ToVector<float>(), expected[1].ToVector<float>());
}

TEST(PredictorTest, OutputsOfMixedPrecisionAreFloat32) {
  RegisterAll();
  Sequential model({Input(Shape{4}), Dense(2)}, {.dtype_policy = "mixed_bfloat16"});
  const Predictor predictor(model);
  EXPECT_EQ(predictor.outputs()[0].dtype, DType::kFloat32);
  const Tensor x = Counting(Shape{3, 4});
  EXPECT_EQ(predictor.Predict(x).ToVector<float>(), model.Predict(x).ToVector<float>());
}

TEST(PredictorTest, TensorsThatDoNotFitAreNamed) {
  const Predictor predictor(TwoByTwo());
  const Tensor words = Words(5), x = Counting(Shape{5, 3});
  const auto predict = [&](const std::vector<Tensor>& given) { return [&, given] { predictor.PredictAll(given); }; };
  ExpectError<InvalidArgumentError>(predict({words}),
                                    AllOf(HasSubstr("expected 2 tensors"), HasSubstr("'word' int64[?,2]"),
                                          HasSubstr("'x' float32[?,3]"), HasSubstr("got 1")));
  ExpectError<InvalidArgumentError>(predict({x, words}),
                                    AllOf(HasSubstr("expected int64[?,2] for input 'word' of model 'pair'"),
                                          HasSubstr("got float32[5,3]"), HasSubstr("convert it")));
  ExpectError<InvalidArgumentError>(
      predict({words, Counting(Shape{5, 4})}),
      AllOf(HasSubstr("expected float32[?,3] for input 'x'"), HasSubstr("got float32[5,4]")));
  ExpectError<InvalidArgumentError>(predict({words, Counting(Shape{3})}),
                                    AllOf(HasSubstr("input 'x'"), HasSubstr("got float32[3]"), HasSubstr("batch")));
  ExpectError<InvalidArgumentError>(predict({words, Tensor()}),
                                    AllOf(HasSubstr("input 'x'"), HasSubstr("got an empty Tensor")));
  ExpectError<InvalidArgumentError>(
      predict({words, Counting(Shape{4, 3})}),
      AllOf(HasSubstr("one batch size"), HasSubstr("5 examples for input 'word' and 4 for input 'x'")));
  EXPECT_EQ(predictor.PredictAll({words, x}).size(), 2u) << "an error spoils nothing";
}

TEST(PredictorTest, NamesThatDoNotFitAreNamed) {
  const Predictor predictor(TwoByTwo());
  const Tensor words = Words(5), x = Counting(Shape{5, 3});
  ExpectError<InvalidArgumentError>(
      [&] {
        predictor.PredictNamed({{"wrd", words}, {"x", x}});
      },
      AllOf(HasSubstr("got 'wrd'"), HasSubstr("did you mean word?")));
  ExpectError<InvalidArgumentError>(
      [&] {
        predictor.PredictNamed({{"x", x}});
      },
      HasSubstr("got none for 'word' int64[?,2]"));
  ExpectError<InvalidArgumentError>(
      [&] {
        predictor.PredictNamed({{"x", x}, {"x", x}, {"word", words}});
      },
      HasSubstr("got 'x' twice"));
  ExpectError<InvalidArgumentError>([&] { predictor.Predict(x); },
                                    AllOf(HasSubstr("expected a model with one output"), HasSubstr("'left'")));
}

// Only the example whose number is out of range fails, and later calls go on.
TEST(PredictorTest, WhatAKernelThrowsEndsOneCall) {
  const Predictor predictor(TwoByTwo());
  Tensor words = Words(2);
  words.data<int64_t>()[3] = 77;
  ExpectError<InvalidArgumentError>([&] { predictor.PredictAll({words, Counting(Shape{2, 3})}); }, HasSubstr("77"));
  EXPECT_EQ(predictor.PredictAll({Words(2), Counting(Shape{2, 3})})[0].shape(), (Shape{2, 2}));
}

TEST(PredictorTest, AModelWithoutInputShapesIsRefused) {
  RegisterAll();
  const Sequential open({Dense(2)}, {.name = "open"});
  ExpectError<FailedPreconditionError>([&] { Predictor predictor(open); },
                                       AllOf(HasSubstr("'open'"), HasSubstr("Input(shape)")));
}

}  // namespace
}  // namespace cohort::keras
