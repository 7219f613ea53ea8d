// Vocabularies and idf weights that Keras keeps outside of config.json.
#include "cohort/keras/files/vocabulary_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model with one layer.
ConfigValue ModelWith(const char* class_name) {
  const ConfigValue::Object config = {{"vocabulary", nullptr}, {"idf_weights", nullptr}};
  const ConfigValue layer = ConfigValue::Object{{"class_name", class_name}, {"config", config}};
  return ConfigValue::Object{{"class_name", "Functional"},
                             {"config", ConfigValue::Object{{"layers", ConfigValue::List{layer}}}}};
}

ConfigValue LayerConfig(const ConfigValue& model) {
  return model.At("config").At("layers").AsList().at(0).At("config");
}

std::string JsonOf(const char* class_name, const std::map<std::string, std::string>& assets,
                   const std::vector<WeightGroup>& groups, const char* option) {
  return LayerConfig(WithVocabularies(ModelWith(class_name), assets, groups)).At(option).ToJson();
}

constexpr char kAsset[] = "layers/text_vectorization/vocabulary.txt";
constexpr char kGroup[] = "layers/text_vectorization";

TEST(VocabularyAssetsTest, LayersGetWhatTheyHaveLearned) {
  const std::vector<WeightGroup> groups = {{"layers/other", "", {}, Tensor::Vector(std::vector<float>{9, 9, 9})},
                                           {kGroup, "", {}, Tensor::Vector(std::vector<float>{0.5f, 1, 2, 0, 0})}};
  const std::map<std::string, std::string> assets = {{kAsset, "[UNK]\na\r\nb\n\n"}};
  EXPECT_EQ(JsonOf("TextVectorization", assets, groups, "vocabulary"), R"(["[UNK]", "a", "b"])");
  // Behind the vocabulary are zeros, up to max_tokens.
  EXPECT_EQ(JsonOf("TextVectorization", assets, groups, "idf_weights"), "[0.5, 1.0, 2.0]");
  EXPECT_EQ(JsonOf("TextVectorization", assets, {}, "idf_weights"), "null");
  EXPECT_EQ(JsonOf("IntegerLookup", {{"layers/integer_lookup/vocabulary.txt", "-1\n7"}}, {}, "vocabulary"), "[-1, 7]");
}

TEST(VocabularyAssetsTest, WhatDoesNotFitIsNamed) {
  const auto refused = [](const char* class_name, const std::map<std::string, std::string>& assets,
                          const Tensor& weights) {
    return MessageOf<InvalidArgumentError>([&] {
      WithVocabularies(ModelWith(class_name), assets, {{kGroup, "", {}, weights}});
    });
  };
  EXPECT_THAT(refused("TextVectorization", {}, {}), HasSubstr(std::string("or in assets/") + kAsset));
  EXPECT_THAT(refused("TextVectorization", {{kAsset, "a\nb"}}, Tensor::Vector(std::vector<float>{1})),
              HasSubstr("expected 2 float32 numbers in 'layers/text_vectorization/vars/idf_weights'"));
  EXPECT_THAT(refused("TextVectorization", {{kAsset, "a\nb"}}, Tensor::Vector(std::vector<double>{1, 2})),
              HasSubstr("got float64[2]"));
  EXPECT_THAT(refused("IntegerLookup", {{"layers/integer_lookup/vocabulary.txt", "7\nx"}}, {}), HasSubstr("got \"x\""));
}

TEST(VocabularyAssetsTest, IdfWeightsStandBesideTheValuesOfAFile) {
  const Tensor values = Tensor::Vector(std::vector<float>{1, 2}), weights = Tensor::Vector(std::vector<float>{3});
  const auto groups = DecodeWeights(
      EncodeWeights({{"a", "a", {values}, weights}, {"b", "b", {}, weights}, {"c", "c", {values}}}), "a test");
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_THAT(groups[0].values.at(0).ToVector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(groups[0].idf_weights.ToVector<float>(), ElementsAre(3));
  EXPECT_TRUE(groups[1].values.empty());
  EXPECT_THAT(groups[1].idf_weights.ToVector<float>(), ElementsAre(3));
  EXPECT_FALSE(groups[2].idf_weights.defined());
}

}  // namespace
}  // namespace cohort::keras
