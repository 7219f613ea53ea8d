// Texts to indices and vectors, what LearnText learns, and a model of texts from Fit to files.
#include "cohort/keras/layers/preprocessing/text_vectorization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/preprocessing/preprocessing_layers.h"
#include "cohort/keras/layers/preprocessing/vocabulary.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/predictor.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

Tensor Texts(const Strings& texts) { return Tensor::FromValues(texts, Shape{static_cast<int64_t>(texts.size()), 1}); }

std::vector<int64_t> Indices(const TextVectorizationOptions& options, const Strings& texts) {
  return RunLayer(TextVectorization(options), Texts(texts)).ToVector<int64_t>();
}
std::vector<float> Vectors(const TextVectorizationOptions& options, const Strings& texts) {
  return RunLayer(TextVectorization(options), Texts(texts)).ToVector<float>();
}

template <typename Make>
std::string WhyRefused(const Make& make) {
  return MessageOf<InvalidArgumentError>(make);
}
std::string RefusalOf(const TextVectorizationOptions& options) {
  return WhyRefused([&] { TextVectorization(options); });
}

TEST(TextVectorizationTest, WordsBecomeIndices) {
  const LayerRef layer = TextVectorization({.vocabulary = {"earth", "wind", "and", "fire"}});
  EXPECT_EQ(VocabularySize(layer), 6);
  const Tensor indices = RunLayer(layer, Texts({"Earth, wind & FIRE!", " and\tits  ", ""}));
  EXPECT_EQ(indices.shape(), (Shape{3, 3}));
  EXPECT_THAT(indices.ToVector<int64_t>(), ElementsAre(2, 3, 5, 4, 1, 0, 0, 0, 0));
  EXPECT_THAT(RunLayer(layer, Tensor::Vector(Strings{"fire fire"})).ToVector<int64_t>(), ElementsAre(5, 5));
}

TEST(TextVectorizationTest, SequencesHaveTheLengthThatIsAsked) {
  const Strings texts = {"a b c d", "b"};
  EXPECT_THAT(Indices({.output_sequence_length = 2, .vocabulary = {"a", "b"}}, texts), ElementsAre(2, 3, 3, 0));
  EXPECT_THAT(Indices({.output_sequence_length = 5, .vocabulary = {"a", "b"}}, texts),
              ElementsAre(2, 3, 1, 1, 0, 3, 0, 0, 0, 0));
  const LayerTensor in = Input(Shape{1}, {.dtype = DType::kString});
  EXPECT_EQ(TextVectorization({.output_sequence_length = 5, .vocabulary = {"a"}})(in).shape(), (Shape{-1, 5}));
  EXPECT_EQ(TextVectorization({.vocabulary = {"a"}})(in).shape(), (Shape{-1, -1}));
  EXPECT_EQ(TextVectorization({.output_mode = "count", .vocabulary = {"a", "b"}})(in).shape(), (Shape{-1, 3}));
}

TEST(TextVectorizationTest, TextsAreStandardizedAndSplitAsTheOptionsSay) {
  const Strings vocabulary = {"A", "a", "a.", "A."};
  const Strings texts = {"A. a."};
  EXPECT_THAT(Indices({.vocabulary = vocabulary}, texts), ElementsAre(3, 3));
  EXPECT_THAT(Indices({.standardize = "lower", .vocabulary = vocabulary}, texts), ElementsAre(4, 4));
  EXPECT_THAT(Indices({.standardize = "strip_punctuation", .vocabulary = vocabulary}, texts), ElementsAre(2, 3));
  EXPECT_THAT(Indices({.standardize = std::nullopt, .vocabulary = vocabulary}, texts), ElementsAre(5, 4));
  EXPECT_THAT(Indices({.split = "character", .vocabulary = {"\xc3\xa9", "\xef\xbf\xbd", "x"}}, {"x\xc3\xa9\xff y"}),
              ElementsAre(4, 2, 3, 1, 1));
  const TextVectorizationOptions whole = {.split = std::nullopt, .vocabulary = {"a b", "c"}};
  EXPECT_THAT(Indices(whole, {"A b", "c", "", "d"}), ElementsAre(2, 3, 0, 1));
}

TEST(TextVectorizationTest, NeighboursBecomeTokens) {
  const TextVectorizationOptions pairs = {.ngrams = 2, .vocabulary = {"a", "b", "a b", "b a"}};
  EXPECT_THAT(Indices(pairs, {"a b a", "", "b"}), ElementsAre(2, 3, 2, 4, 5, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0));
  const TextVectorizationOptions only = {.ngrams = std::vector<int64_t>{2}, .vocabulary = {"a b", "b a"}};
  EXPECT_THAT(Indices(only, {"a b a", "a"}), ElementsAre(2, 3, 0, 0));
  const TextVectorizationOptions characters = {
      .split = "character", .ngrams = 2, .output_mode = "count", .vocabulary = {"a", "a b"}};
  EXPECT_THAT(Vectors(characters, {"ab", "b"}), ElementsAre(1, 1, 1, 1, 0, 0));
  TextVectorizationOptions columns = {.split = std::nullopt, .ngrams = 2, .vocabulary = {"a", "b", "a b"}};
  const Tensor x = Tensor::FromValues(Strings{"a", "b", "b", "a"}, Shape{2, 2});
  EXPECT_THAT(RunLayer(TextVectorization(columns), x).ToVector<int64_t>(), ElementsAre(2, 3, 4, 3, 2, 1));
  columns.output_sequence_length = 4;
  EXPECT_THAT(RunLayer(TextVectorization(columns), x).ToVector<int64_t>(), ElementsAre(2, 3, 4, 0, 3, 2, 1, 0));
}

TEST(TextVectorizationTest, TheOtherModesMakeVectors) {
  const Strings vocabulary = {"a", "b"}, texts = {"a a x", "b", ""};
  EXPECT_THAT(Vectors({.output_mode = "multi_hot", .vocabulary = vocabulary}, texts),
              ElementsAre(1, 1, 0, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(Vectors({.output_mode = "count", .vocabulary = vocabulary}, texts),
              ElementsAre(1, 2, 0, 0, 0, 1, 0, 0, 0));
  // Without a weight of its own, the index of unknown words has the mean.
  EXPECT_THAT(Vectors({.output_mode = "tf_idf", .vocabulary = vocabulary, .idf_weights = {0.5, 2}}, texts),
              ElementsAre(1.25f, 1, 0, 0, 0, 2, 0, 0, 0));
  EXPECT_THAT(Vectors({.output_mode = "tf_idf", .vocabulary = {"[UNK]", "a", "b"}, .idf_weights = {7, 0.5, 2}}, texts),
              ElementsAre(7, 1, 0, 0, 0, 2, 0, 0, 0));
  EXPECT_THAT(Vectors({.max_tokens = 5,
                       .output_mode = "tf_idf",
                       .pad_to_max_tokens = true,
                       .vocabulary = vocabulary,
                       .idf_weights = {0.5, 2}},
                      {"b x"}),
              ElementsAre(1.25f, 0, 2, 0, 0));
  const Tensor x = Tensor::FromValues(Strings{"a", "", "b", "b"}, Shape{2, 2});
  EXPECT_THAT(RunLayer(TextVectorization({.split = std::nullopt, .output_mode = "count", .vocabulary = vocabulary}), x)
                  .ToVector<float>(),
              ElementsAre(0, 1, 0, 0, 0, 2));
}

TEST(TextVectorizationTest, TheSpecialTokensMayStandBeforeTheVocabulary) {
  EXPECT_THAT(Indices({.vocabulary = {"", "[UNK]", "a"}}, {"a b"}), ElementsAre(2, 1));
  EXPECT_THAT(Vectors({.output_mode = "count", .vocabulary = {"[UNK]", "a"}}, {"a b b"}), ElementsAre(2, 1));
  EXPECT_THAT(RefusalOf({.output_mode = "count", .vocabulary = {"", "[UNK]", "a"}}), HasSubstr("without \"\""));
}

TEST(TextVectorizationTest, WhatItRefuses) {
  const Strings a = {"a"};
  EXPECT_THAT(RefusalOf({}), HasSubstr("at least one token"));
  EXPECT_THAT(RefusalOf({.vocabulary = {"a", "b", "a"}}), HasSubstr("entries 0 and 2 are both \"a\""));
  EXPECT_THAT(RefusalOf({.vocabulary = {"a", ""}}), HasSubstr("without \"\""));
  EXPECT_THAT(RefusalOf({.max_tokens = 3, .vocabulary = {"a", "b"}}),
              HasSubstr("at most max_tokens = 3 indices; got 4"));
  EXPECT_THAT(RefusalOf({.max_tokens = 1, .vocabulary = a}), HasSubstr("max_tokens above 1; got 1"));
  EXPECT_THAT(RefusalOf({.standardize = "upper", .vocabulary = a}), HasSubstr("got \"upper\""));
  EXPECT_THAT(RefusalOf({.split = "words", .vocabulary = a}), HasSubstr("got \"words\""));
  EXPECT_THAT(RefusalOf({.ngrams = -1, .vocabulary = a}), HasSubstr("ngrams in [1, 1024]; got -1"));
  EXPECT_THAT(RefusalOf({.ngrams = std::vector<int64_t>{2, 0}, .vocabulary = a}), HasSubstr("got 0"));
  EXPECT_THAT(RefusalOf({.ngrams = std::vector<int64_t>{}, .vocabulary = a}), HasSubstr("got none"));
  EXPECT_THAT(RefusalOf({.output_mode = "one_hot", .vocabulary = a}), HasSubstr("got \"one_hot\""));
  EXPECT_THAT(RefusalOf({.output_mode = "count", .output_sequence_length = 3, .vocabulary = a}),
              HasSubstr("only for output_mode \"int\""));
  EXPECT_THAT(RefusalOf({.output_sequence_length = 0, .vocabulary = a}), HasSubstr("got 0"));
  EXPECT_THAT(RefusalOf({.output_mode = "count", .pad_to_max_tokens = true, .vocabulary = a}),
              HasSubstr("max_tokens beside pad_to_max_tokens"));
  EXPECT_THAT(RefusalOf({.vocabulary = a, .idf_weights = {1}}), HasSubstr("only for output_mode \"tf_idf\""));
  EXPECT_THAT(RefusalOf({.output_mode = "tf_idf", .vocabulary = a}), HasSubstr("as many idf_weights"));
  EXPECT_THAT(RefusalOf({.output_mode = "tf_idf", .vocabulary = a, .idf_weights = {std::nan("")}}),
              HasSubstr("finite"));
  EXPECT_THAT(WhyRefused([&] { TextVectorization({.vocabulary = a})(Input(Shape{1})); }),
              AllOf(HasSubstr("expected strings; got float32"), HasSubstr("DType::kString")));
  EXPECT_THAT(WhyRefused([&] { TextVectorization({.vocabulary = a})(Input(Shape{2}, {.dtype = DType::kString})); }),
              HasSubstr("[batch, 1] whose texts are split; got shape [?,2]"));
}

TEST(LearnTextTest, TheMostFrequentTokensAreLearned) {
  const Tensor texts = Tensor::Vector(Strings{"The cat, the dog", "a CAT", "[UNK] dog", "bird"});
  const LearnedText all = LearnText(texts);
  EXPECT_THAT(all.vocabulary, ElementsAre("the", "dog", "cat", "unk", "bird", "a"));
  EXPECT_THAT(all.idf_weights, ElementsAre(DoubleNear(std::log(3.0), 1e-12), DoubleNear(std::log(7.0 / 3), 1e-12),
                                           DoubleNear(std::log(7.0 / 3), 1e-12), DoubleNear(std::log(3.0), 1e-12),
                                           DoubleNear(std::log(3.0), 1e-12), DoubleNear(std::log(3.0), 1e-12)));
  EXPECT_THAT(LearnText(texts, {.max_tokens = 4}).vocabulary, ElementsAre("the", "dog"));
  EXPECT_THAT(LearnText(texts, {.max_tokens = 4, .output_mode = "count"}).vocabulary, ElementsAre("the", "dog", "cat"));
  EXPECT_THAT(
      LearnText(texts, {.max_tokens = 3, .standardize = std::nullopt, .ngrams = std::vector<int64_t>{2}}).vocabulary,
      ElementsAre("the dog"));
  EXPECT_THAT(LearnText(Tensor::Vector(Strings{"ab", "b"}), {.split = "character"}).vocabulary, ElementsAre("b", "a"));
  EXPECT_THAT(LearnText(Tensor::Vector(Strings{"a b", "b"}), {.split = std::nullopt}).vocabulary,
              ElementsAre("b", "a b"));
}

TEST(LearnTextTest, ADatasetIsReadWhole) {
  const auto data = data::Dataset::FromTensorSlices(
      {Tensor::Vector(std::vector<int64_t>{1, 2, 3}), Tensor::Vector(Strings{"x y", "y", "z y"})});
  for (const auto& batches : {data, data.Batch(2)}) {
    const LearnedText learned = LearnText(batches, {}, 1);
    EXPECT_THAT(learned.vocabulary, ElementsAre("y", "z", "x"));
    EXPECT_THAT(learned.idf_weights[0], DoubleNear(std::log(1.75), 1e-12));
  }
  EXPECT_THAT(WhyRefused([&] { LearnText(data); }), HasSubstr("got int64"));
  EXPECT_THAT(WhyRefused([&] { LearnText(data, {}, 2); }), HasSubstr("in [0, 2); got 2"));
  EXPECT_THAT(WhyRefused([&] { LearnText(data.Repeat(), {}, 1); }), HasSubstr("a dataset that ends"));
  EXPECT_THAT(WhyRefused([&] { LearnText(data, {.max_tokens = 2}, 1); }), HasSubstr("above the 2 special tokens"));
  EXPECT_THAT(WhyRefused([&] { LearnText(data, {.ngrams = 0}, 1); }), HasSubstr("got 0"));
}

TEST(LookupVectorsTest, LookupsHaveIdfWeightsToo) {
  const Tensor x = Tensor::FromValues(Strings{"a", "b", "b", "x", "", "a"}, Shape{2, 3});
  const std::vector<double> learned = LearnIdfWeights(x, Strings{"a", "b"});
  EXPECT_THAT(learned, ElementsAre(DoubleNear(std::log(5.0 / 3), 1e-12), DoubleNear(std::log(2.0), 1e-12)));
  EXPECT_EQ(LearnIdfWeights(data::Dataset::FromTensorSlices({x}).Batch(1), Strings{"a", "b"}), learned);
  // Three documents without a token count as others do.
  EXPECT_THAT(LearnIdfWeights(Tensor(DType::kString, Shape{3, 0}), Strings{"a"}), ElementsAre(std::log(4.0)));
  const auto strings = RunLayer(StringLookup({.max_tokens = 6,
                                              .vocabulary = {"a", "b"},
                                              .idf_weights = {0.5, 2},
                                              .num_oov_indices = 2,
                                              .mask_token = "",
                                              .output_mode = "tf_idf",
                                              .pad_to_max_tokens = true}),
                                x);
  EXPECT_EQ(strings.shape(), (Shape{2, 6}));
  EXPECT_THAT(strings.Slice(0, 1).Reshaped(Shape{6}).ToVector<float>(), ElementsAre(0, 0, 0.5f, 4, 0, 0));
  const auto integers = RunLayer(
      IntegerLookup({.max_tokens = 4, .vocabulary = {7, 8}, .output_mode = "count", .pad_to_max_tokens = true}),
      Tensor::FromValues(std::vector<int64_t>{7, 9}, Shape{1, 2}));
  EXPECT_THAT(integers.ToVector<float>(), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(WhyRefused([] {
                LearnIdfWeights(Tensor::Vector(Strings{"a"}), Strings{"a", "a"});
              }),
              HasSubstr("both \"a\""));
  EXPECT_THAT(WhyRefused([] { LearnIdfWeights(Tensor::Vector(Strings{"a"}), Strings{}); }), HasSubstr("got none"));
}

TEST(HashedCrossingTest, CrossesAreKerass) {
  // The numbers that Keras's documentation has for its layer.
  const Tensor words = Tensor::FromValues(Strings{"A", "B", "A", "B", "A"}, Shape{5});
  const Tensor ids = Tensor::FromValues(std::vector<int64_t>{101, 101, 101, 102, 102}, Shape{5});
  const auto run = [&](const LayerRef& layer, const Shape& shape) {
    const LayerTensor a = Input(shape, {.dtype = DType::kString}), b = Input(shape, {.dtype = DType::kInt64});
    Model model({a, b}, {layer({a, b})});
    return OutputOf(model, {words.Reshaped(Shape{5}.Concat(shape)), ids.Reshaped(Shape{5}.Concat(shape))});
  };
  EXPECT_THAT(run(HashedCrossing(5), Shape{}).ToVector<int64_t>(), ElementsAre(1, 4, 1, 1, 3));
  EXPECT_EQ(run(HashedCrossing(5), Shape{1}).shape(), (Shape{5, 1}));
  const Tensor vectors = run(HashedCrossing(5, {.output_mode = "one_hot"}), Shape{1});
  EXPECT_EQ(vectors.shape(), (Shape{5, 5}));
  EXPECT_THAT(vectors.Slice(1, 2).Reshaped(Shape{5}).ToVector<float>(), ElementsAre(0, 0, 0, 0, 1));

  const LayerTensor a = Input(Shape{1}, {.dtype = DType::kString}), wide = Input(Shape{2}, {.dtype = DType::kString});
  EXPECT_THAT(WhyRefused([] { HashedCrossing(0); }), HasSubstr("num_bins >= 1; got 0"));
  EXPECT_THAT(WhyRefused([] { HashedCrossing(3, {.output_mode = "count"}); }), HasSubstr("got \"count\""));
  EXPECT_THAT(WhyRefused([&] { HashedCrossing(3)(a); }), HasSubstr("at least two inputs; got 1"));
  EXPECT_THAT(WhyRefused([&] { HashedCrossing(3)({a, wide}); }), HasSubstr("all [batch, 1]; got shapes"));
  EXPECT_THAT(WhyRefused([&] { HashedCrossing(3)({a, Input(Shape{1})}); }), HasSubstr("got float32"));
}

// Two kinds of sentences.
Strings Sentences(int n) {
  const Strings good = {"great", "lovely", "fine"}, bad = {"awful", "poor", "dull"};
  Strings texts;
  for (int i = 0; i < n; ++i) {
    const Strings& words = i % 2 == 0 ? good : bad;
    texts.push_back("The film was " + words[static_cast<size_t>(i / 2 % 3)] + (i % 5 == 0 ? "!" : " indeed."));
  }
  return texts;
}

TEST(TextVectorizationTest, AModelOfTextsTrainsAndIsSaved) {
  const ::cohort::testing::TempFolder folder;
  const Strings texts = Sentences(60);
  Tensor labels(DType::kFloat32, Shape{60, 1});
  for (int i = 0; i < 60; ++i) labels.data<float>()[i] = static_cast<float>(i % 2);
  for (const std::optional<int64_t> length : {std::optional<int64_t>(6), std::optional<int64_t>()}) {
    TextVectorizationOptions options = {.max_tokens = 20, .output_sequence_length = length};
    options.vocabulary = LearnText(Texts(texts), options).vocabulary;
    const LayerRef vectorize = TextVectorization(options);
    Sequential model({Input(Shape{1}, {.dtype = DType::kString}), vectorize, Embedding(VocabularySize(vectorize), 4),
                      GlobalAveragePooling1D(), Dense(1, {.activation = "sigmoid"})});
    model.Compile({.optimizer = Adam({.learning_rate = 0.1}), .loss = "binary_crossentropy", .metrics = {"accuracy"}});
    model.Fit(Texts(texts), labels, {.batch_size = 20, .epochs = 20, .verbose = 0});
    EXPECT_GT(FindLog(model.Evaluate(Texts(texts), labels, {.verbose = 0}), "accuracy").value(), 0.95);
    const Strings asked = {"GREAT film", "a poor, poor film"};
    const std::vector<float> expected = model.Predict(Texts(asked)).ToVector<float>();
    EXPECT_LT(expected[0], 0.5f);
    EXPECT_GT(expected[1], 0.5f);
    model.Save(folder / "model.keras");
    EXPECT_EQ(LoadModel(folder / "model.keras").Predict(Texts(asked)).ToVector<float>(), expected);
    EXPECT_EQ(Predictor(model).PredictAll({Texts(asked)}).at(0).ToVector<float>(), expected);
  }
}

// As the end of TensorFlow's tutorial: a model that was trained on indices gets the layer for texts in front of it.
TEST(TextVectorizationTest, ATrainedModelGetsTextsLater) {
  const ::cohort::testing::TempFolder folder;
  const LayerRef vectorize = TextVectorization({.output_sequence_length = 4, .vocabulary = {"good", "bad"}});
  Sequential inner({Input(Shape{4}, {.dtype = DType::kInt64}), Embedding(VocabularySize(vectorize), 3),
                    GlobalAveragePooling1D(), Dense(1)});
  const Tensor texts = Texts({"Good, good!", "bad"});
  const std::vector<float> expected = inner.Predict(RunLayer(vectorize, texts)).ToVector<float>();
  Sequential whole({vectorize, inner.AsLayer(), Activation("sigmoid")});
  const std::vector<float> chances = whole.Predict(texts).ToVector<float>();
  ASSERT_EQ(chances.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(chances[i], 1 / (1 + std::exp(-expected[i])));
  whole.Save(folder / "whole.keras");
  EXPECT_EQ(LoadModel(folder / "whole.keras").Predict(texts).ToVector<float>(), chances);
}

TEST(TextVectorizationTest, OptionsComeBackFromFiles) {
  const ::cohort::testing::TempFolder folder;
  const std::vector<TextVectorizationOptions> all = {
      {.standardize = std::nullopt, .split = "character", .ngrams = 2, .vocabulary = {"a", "b a"}},
      {.max_tokens = 7,
       .standardize = "lower",
       .ngrams = std::vector<int64_t>{1, 3},
       .output_mode = "tf_idf",
       .pad_to_max_tokens = true,
       .vocabulary = {"a", "a b a"},
       .idf_weights = {0.1, 0.2}},
      {.split = std::nullopt, .output_sequence_length = 3, .vocabulary = {"a b a!"}}};
  for (const TextVectorizationOptions& options : all) {
    const LayerTensor in = Input(Shape{1}, {.dtype = DType::kString});
    Model model({in}, {TextVectorization(options)(in)});
    model.Save(folder / "a.keras");
    Model loaded = LoadModel(folder / "a.keras");
    const Tensor x = Texts({"a b A!", "a"});
    const Tensor before = model.Predict(x), after = loaded.Predict(x);
    EXPECT_EQ(before.shape(), after.shape());
    if (options.output_mode == "int") {
      EXPECT_EQ(before.ToVector<int64_t>(), after.ToVector<int64_t>());
    } else {
      EXPECT_EQ(before.ToVector<float>(), after.ToVector<float>());
    }
    loaded.Save(folder / "b.keras");
    EXPECT_EQ(ReadModelArchive(folder / "a.keras").config, ReadModelArchive(folder / "b.keras").config);
  }
}

}  // namespace
}  // namespace cohort::keras
