// Layers that prepare inputs: what they compute and refuse, and models that take strings, from Fit to files.
#include "cohort/keras/layers/preprocessing/preprocessing_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/model_layer.h"
#include "cohort/keras/predictor.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Lt;
using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;

Tensor Words(const Strings& words, const Shape& shape) { return Tensor::FromValues(words, shape); }
Tensor Ids(const Integers& ids, const Shape& shape) { return Tensor::FromValues(ids, shape); }

template <typename Make>
std::string Refusal(const Make& make) {
  return MessageOf<InvalidArgumentError>(make);
}

TEST(LookupLayersTest, StringsBecomeIndices) {
  const Tensor x = Words({"a", "c", "hat", "b"}, Shape{2, 2});
  EXPECT_THAT(RunLayer(StringLookup({.vocabulary = {"a", "b", "c"}}), x).ToVector<int64_t>(), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(RunLayer(StringLookup({.vocabulary = {"a", "b"}, .mask_token = "hat"}), x).ToVector<int64_t>(),
              ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(
      RunLayer(StringLookup({.vocabulary = {"a", "b", "c", "hat"}, .num_oov_indices = 0}), x).ToVector<int64_t>(),
      ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(RunLayer(StringLookup({.vocabulary = {"a", "b", "c"}, .num_oov_indices = 0, .mask_token = "hat"}), x)
                  .ToVector<int64_t>(),
              ElementsAre(1, 3, 0, 2));
  // With several indices for unknown values, a value always gets the same one.
  const Tensor unknown = Words({"x1", "x2", "x3", "x4", "x5", "x6", "x1", "a"}, Shape{8});
  const Integers places = RunLayer(StringLookup({.vocabulary = {"a"}, .num_oov_indices = 3, .mask_token = ""}), unknown)
                              .ToVector<int64_t>();
  EXPECT_EQ(places[0], places[6]);
  EXPECT_EQ(places[7], 4);
  EXPECT_THAT(Integers(places.begin(), places.end() - 1), Each(AllOf(::testing::Gt(0), Lt(4))));
}

TEST(LookupLayersTest, IntegersBecomeIndices) {
  const LayerRef lookup = IntegerLookup({.vocabulary = {100, -7}, .num_oov_indices = 2, .mask_token = 0});
  EXPECT_THAT(RunLayer(lookup, Ids({-7, 100, 0, 5, 6, -1}, Shape{6})).ToVector<int64_t>(),
              ElementsAre(4, 3, 0, 2, 1, 2));
  EXPECT_EQ(VocabularySize(lookup), 5);
  EXPECT_THAT(RunLayer(lookup, Tensor::Vector(std::vector<int32_t>{100})).ToVector<int64_t>(), ElementsAre(3));
}

TEST(LookupLayersTest, TheSpecialTokensMayStandBeforeTheVocabulary) {
  const LayerRef lookup = StringLookup({.vocabulary = {"", "[UNK]", "a"}, .mask_token = ""});
  EXPECT_EQ(VocabularySize(lookup), 3);
  EXPECT_THAT(RunLayer(lookup, Words({"a", "b", ""}, Shape{3})).ToVector<int64_t>(), ElementsAre(2, 1, 0));
}

TEST(LookupLayersTest, TheOtherOutputModesMakeVectors) {
  const auto run = [](const std::string& mode, std::optional<std::string> mask) {
    return RunLayer(StringLookup({.vocabulary = {"a", "b"}, .mask_token = mask, .output_mode = mode}),
                    Words({"b", "b", "x", "", "a", "x"}, Shape{2, 3}));
  };
  EXPECT_THAT(run("multi_hot", std::nullopt).ToVector<float>(), ElementsAre(1, 0, 1, 1, 1, 0));
  EXPECT_THAT(run("count", std::nullopt).ToVector<float>(), ElementsAre(1, 0, 2, 2, 1, 0));
  EXPECT_THAT(run("count", "").ToVector<float>(), ElementsAre(1, 0, 2, 1, 1, 0));
  EXPECT_EQ(run("one_hot", std::nullopt).shape(), (Shape{2, 3, 3}));
  EXPECT_EQ(RunLayer(StringLookup({.vocabulary = {"a"}, .output_mode = "one_hot"}), Words({"a"}, Shape{1, 1})).shape(),
            (Shape{1, 2}));
}

TEST(LookupLayersTest, IndicesBecomeTokens) {
  const Tensor x = Ids({0, 1, 2, 3, 4, -1}, Shape{6});
  EXPECT_THAT(
      RunLayer(StringLookup({.vocabulary = {"a", "b"}, .mask_token = "", .invert = true}), x).ToVector<std::string>(),
      ElementsAre("", "[UNK]", "a", "b", "[UNK]", "[UNK]"));
  EXPECT_THAT(
      RunLayer(IntegerLookup({.vocabulary = {7, 8}, .num_oov_indices = 0, .invert = true}), x).ToVector<int64_t>(),
      ElementsAre(7, 8, -1, -1, -1, -1));
}

TEST(LookupLayersTest, WhatTheyRefuse) {
  EXPECT_THAT(Refusal([] { StringLookup({}); }), HasSubstr("expected a vocabulary with at least one token"));
  EXPECT_THAT(Refusal([] { StringLookup({.vocabulary = {"a"}, .num_oov_indices = INT64_MAX, .mask_token = ""}); }),
              HasSubstr("num_oov_indices in [0, 16777216]"));
  EXPECT_THAT(Refusal([] { StringLookup({.vocabulary = {"[UNK]"}}); }), HasSubstr("at least one token"));
  EXPECT_THAT(Refusal([] {
                StringLookup({.vocabulary = {"a", "b", "a"}});
              }),
              HasSubstr("entries 0 and 2 are both \"a\""));
  EXPECT_THAT(Refusal([] {
                StringLookup({.vocabulary = {"a", ""}, .mask_token = ""});
              }),
              HasSubstr("the mask token \"\""));
  EXPECT_THAT(Refusal([] { IntegerLookup({.vocabulary = {1, -1}, .invert = true}); }), HasSubstr("oov_token"));
  EXPECT_THAT(Refusal([] { StringLookup({.vocabulary = {"a"}, .output_mode = "tf-idf"}); }),
              HasSubstr("got \"tf-idf\""));
  EXPECT_THAT(Refusal([] { StringLookup({.vocabulary = {"a"}})(Input(Shape{1})); }),
              AllOf(HasSubstr("expected strings; got float32"), HasSubstr("DType::kString")));
  EXPECT_THAT(Refusal([] { VocabularySize(Dense(1)); }), HasSubstr("class Dense"));
  EXPECT_THAT(Refusal([] {
                RunLayer(StringLookup({.vocabulary = {"a"}, .num_oov_indices = 0}), Words({"a", "hat"}, Shape{2}));
              }),
              HasSubstr("element 1 is \"hat\""));
}

TEST(PreprocessingLayersTest, HashingIsKerass) {
  // The numbers that Keras's documentation has for its layer.
  const Tensor words = Words({"A", "B", "C", "D", "E"}, Shape{5, 1});
  EXPECT_THAT(RunLayer(Hashing(3), words).ToVector<int64_t>(), ElementsAre(1, 0, 1, 1, 2));
  const Tensor masked = Words({"A", "B", "", "C", "D"}, Shape{5, 1});
  EXPECT_THAT(RunLayer(Hashing(3, {.mask_value = ""}), masked).ToVector<int64_t>(), ElementsAre(1, 1, 0, 2, 2));
  EXPECT_THAT(RunLayer(Hashing(3, {.salt = {{133, 137}}}), words).ToVector<int64_t>(), ElementsAre(1, 2, 1, 0, 2));
  EXPECT_EQ(RunLayer(Hashing(3), Ids({12}, Shape{1})).ToVector<int64_t>(),
            RunLayer(Hashing(3), Words({"12"}, Shape{1})).ToVector<int64_t>());
  EXPECT_THAT(RunLayer(Hashing(5, {.mask_value = int64_t{9}}), Ids({9, 9}, Shape{2})).ToVector<int64_t>(),
              ElementsAre(0, 0));
  EXPECT_THAT(Refusal([] { Hashing(0); }), HasSubstr("num_bins >= 1"));
  EXPECT_THAT(Refusal([] { Hashing(3)(Input(Shape{1})); }), HasSubstr("strings or integers; got float32"));
  EXPECT_THAT(Refusal([&] { RunLayer(Hashing(3, {.mask_value = int64_t{1}}), words); }), HasSubstr("an integer"));
}

TEST(PreprocessingLayersTest, DiscretizationAndCategories) {
  const Tensor x = Tensor::FromValues(std::vector<float>{-1.5f, 1.0f, 3.4f, 0.5f, 0.0f, 3.0f}, Shape{2, 3});
  EXPECT_THAT(RunLayer(Discretization({0, 1, 2}), x).ToVector<int32_t>(), ElementsAre(0, 2, 3, 1, 1, 3));
  EXPECT_THAT(RunLayer(Discretization({0, 1, 2}, {.output_mode = "count"}), x).ToVector<float>(),
              ElementsAre(1, 0, 1, 1, 0, 2, 0, 1));
  EXPECT_THAT(Refusal([] { Discretization({1, 0}); }), HasSubstr("ascending order"));
  EXPECT_THAT(Refusal([] { Discretization({0, std::nan(""), -5}); }), HasSubstr("ascending order"));
  EXPECT_THAT(Refusal([] { CategoryEncoding(int64_t{1} << 40); }), HasSubstr("num_tokens in [1, 16777216]"));
  EXPECT_THAT(Refusal([] {
                Hashing(int64_t{1} << 32, {.output_mode = "one_hot"})(Input(Shape{1}, {.dtype = DType::kString}));
              }),
              HasSubstr("at most 16777216 different indices"));

  const Tensor ids = Ids({0, 2, 2, 1}, Shape{2, 2});
  EXPECT_THAT(RunLayer(CategoryEncoding(3), ids).ToVector<float>(), ElementsAre(1, 0, 1, 0, 1, 1));
  EXPECT_THAT(RunLayer(CategoryEncoding(3, {.output_mode = "count"}), ids).ToVector<float>(),
              ElementsAre(1, 0, 1, 0, 1, 1));
  EXPECT_EQ(RunLayer(CategoryEncoding(3, {.output_mode = "one_hot"}), ids).shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(Refusal([&] { RunLayer(CategoryEncoding(2), ids); }),
              AllOf(HasSubstr("integers in [0, 2)"), HasSubstr("0"), HasSubstr("2")));
  EXPECT_THAT(Refusal([&] { RunLayer(CategoryEncoding(9), Ids({-4, 0}, Shape{1, 2})); }), HasSubstr("-4"));
  EXPECT_THAT(Refusal([] { CategoryEncoding(3)(Input(Shape{}, {.dtype = DType::kInt64})); }),
              HasSubstr("[batch, ..., n]"));
  EXPECT_THAT(Refusal([] { CategoryEncoding(3, {.output_mode = "int"}); }), HasSubstr("got \"int\""));
}

TEST(PreprocessingLayersTest, Normalization) {
  const Tensor x = Tensor::FromValues(std::vector<float>{1, 10, 3, 20}, Shape{2, 2});
  const NormalizationOptions each = {.mean = std::vector<double>{2, 10}, .variance = std::vector<double>{4, 25}};
  EXPECT_THAT(RunLayer(keras::Normalization(each), x).ToVector<float>(), ElementsAre(-0.5f, 0, 0.5f, 2));
  NormalizationOptions back = each;
  back.invert = true;
  EXPECT_THAT(RunLayer(keras::Normalization(back), x).ToVector<float>(), ElementsAre(4, 60, 8, 110));
  EXPECT_THAT(RunLayer(keras::Normalization({.mean = 1.0, .variance = 0.0}), x).ToVector<float>()[2],
              FloatNear(2e7f, 1e1f));

  // Without numbers they are weights.
  Sequential model({Input(Shape{2}), keras::Normalization({.name = "norm"}), Dense(1)});
  EXPECT_EQ(model.Predict(x).shape(), (Shape{2, 1}));
  EXPECT_EQ(model.TrainableWeightNames().size(), 2u);
  model.GetLayer("norm").SetWeights({Tensor::Vector(std::vector<float>{2, 10}),
                                     Tensor::Vector(std::vector<float>{4, 25}), Tensor::Scalar(int64_t{2})});
  Model normalized(model.inputs(), {model.GetLayer("norm").output()});
  EXPECT_THAT(normalized.Predict(x).ToVector<float>(), ElementsAre(-0.5f, 0, 0.5f, 2));

  EXPECT_THAT(Refusal([] { keras::Normalization({.mean = 1.0}); }), HasSubstr("both mean and variance"));
  EXPECT_THAT(Refusal([] { keras::Normalization({.mean = 1.0, .variance = -1.0}); }),
              HasSubstr("not negative; got -1"));
  EXPECT_THAT(Refusal([&] { keras::Normalization(each)(Input(Shape{3})); }), HasSubstr("[batch, ..., 2] for 2 means"));
}

// The same model as a program of a recommender has it: strings and ids in, a click out.
Model ClickModel() {
  const LayerTensor user = Input(Shape{1}, {.dtype = DType::kString, .name = "user"});
  const LayerTensor words = Input(Shape{3}, {.dtype = DType::kString, .name = "words"});
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { Embedding(9, 2, {.name = "table"})(words); }),
      AllOf(HasSubstr("table"), HasSubstr("got strings of shape [?,3]: put StringLookup or Hashing before it")));
  const LayerTensor age = Input(Shape{1}, {.name = "age"});
  const LayerRef known =
      StringLookup({.vocabulary = {"red", "green", "blue"}, .mask_token = "", .output_mode = "multi_hot"});
  const LayerTensor all = Concatenate()(
      {Flatten()(Embedding(1000, 4)(Hashing(1000)(user))), known(words),
       Flatten()(Embedding(4, 2)(Discretization({18, 30, 60})(age))),
       keras::Normalization({.mean = std::vector<double>{40}, .variance = std::vector<double>{100}})(age)});
  return Model({user, words, age}, {Dense(1, {.activation = "sigmoid"})(all)});
}

struct Clicks {
  std::vector<Tensor> x;
  Tensor y;
};

Clicks SomeClicks(int64_t n) {
  Strings users, words;
  std::vector<float> ages, y;
  const Strings colours = {"red", "green", "blue", ""};
  for (int64_t i = 0; i < n; ++i) {
    users.push_back("user " + std::to_string(i % 17));
    for (int64_t j = 0; j < 3; ++j) words.push_back(colours[static_cast<size_t>((i + j * j) % 4)]);
    ages.push_back(static_cast<float>(10 + i * 7 % 70));
    y.push_back(i % 17 < 8 ? 1.0f : 0.0f);
  }
  return {{Words(users, Shape{n, 1}), Words(words, Shape{n, 3}), Tensor::FromValues(ages, Shape{n, 1})},
          Tensor::FromValues(y, Shape{n, 1})};
}

TEST(PreprocessingLayersTest, AModelOfStringsTrainsAndIsSaved) {
  const ::cohort::testing::TempFolder folder;
  const std::string path = folder.path() + "/clicks.keras";
  const Clicks clicks = SomeClicks(200);
  Model model = ClickModel();
  model.Compile({.optimizer = Adam({.learning_rate = 0.05}), .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  const History history = model.Fit(ModelData(clicks.x, {clicks.y}), {.batch_size = 32, .epochs = 40, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 0.3);
  EXPECT_GT(FindLog(model.Evaluate(ModelData(clicks.x, {clicks.y}), {.verbose = 0}), "accuracy").value(), 0.9);

  const std::vector<float> expected = OutputOf(model, clicks.x).ToVector<float>();
  EXPECT_EQ(Predictor(model).PredictAll(clicks.x).at(0).ToVector<float>(), expected);
  model.Save(path);
  Model loaded = LoadModel(path);
  EXPECT_EQ(OutputOf(loaded, clicks.x).ToVector<float>(), expected);
  loaded.Fit(ModelData(clicks.x, {clicks.y}), {.epochs = 1, .verbose = 0});  // goes on where it was

  const std::string again = folder.path() + "/again.keras";
  model.Save(again);
  EXPECT_EQ(ReadModelArchive(path).config, ReadModelArchive(again).config);
}

TEST(PreprocessingLayersTest, ATokenThatFilesCannotHoldIsNamedWhenTheModelIsSaved) {
  const ::cohort::testing::TempFolder folder;
  const auto model = [](const std::string& token) {
    return Sequential({Input(Shape{1}, {.dtype = DType::kString}),
                       StringLookup({.vocabulary = {token}, .output_mode = "count"}), Dense(1)});
  };
  EXPECT_THAT(Refusal([&] { model("\xff").Save(folder / "bad.keras"); }), HasSubstr("tokens in UTF-8"));
  Model fine = model("a\n\"\xc3\xa9\"");
  fine.Save(folder / "fine.keras");
  Model loaded = LoadModel(folder / "fine.keras");
  const Tensor x = Words({"a\n\"\xc3\xa9\"", "b"}, Shape{2, 1});
  EXPECT_EQ(loaded.Predict(x).ToVector<float>(), fine.Predict(x).ToVector<float>());
}

TEST(PreprocessingLayersTest, NumbersForAnInputOfStringsAreRefused) {
  Model model = ClickModel();
  Clicks clicks = SomeClicks(8);
  clicks.x[0] = Tensor(DType::kFloat32, Shape{8, 1});
  EXPECT_THAT(Refusal([&] { OutputOf(model, clicks.x); }),
              AllOf(HasSubstr("input 0"), HasSubstr("(strings); got float32[?,1]")));
  clicks = SomeClicks(8);
  clicks.x[2] = clicks.x[0];
  EXPECT_THAT(Refusal([&] { OutputOf(model, clicks.x); }), AllOf(HasSubstr("input 2"), HasSubstr("(numbers")));
}

}  // namespace
}  // namespace cohort::keras
