// Files of models with masks. tests/interop exchanges such files with Keras.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/core_layers.h"
#include "cohort/keras/layers/recurrent/recurrent_layers.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

const Tensor& PaddedWords() {
  static const Tensor words = Tensor::FromValues<int64_t>({3, 1, 0, 2, 2, 0, 0, 0}, Shape{2, 4});
  return words;
}

TEST(MaskSavingTest, OptionsOfMasks) {
  const testing::TempFolder folder;
  const std::string path = folder / "one.keras", again = folder / "two.keras";
  Sequential model({Input(Shape{4}, {.dtype = DType::kInt64}), Embedding(4, 3, {.mask_zero = true}),
                    LSTM(2, {.return_sequences = true, .zero_output_for_mask = true}), Masking({.mask_value = 0.5}),
                    Bidirectional(GRU(2, {.return_sequences = true})), GlobalAveragePooling1D(), Dense(1)});
  model.Save(path);
  Model loaded = LoadModel(path);
  loaded.Save(again);
  const std::string config = ReadModelArchive(path).config;
  EXPECT_EQ(config, ReadModelArchive(again).config);
  EXPECT_THAT(config, HasSubstr("\"mask_zero\": true"));
  EXPECT_THAT(config, HasSubstr("\"mask_value\": 0.5"));
  EXPECT_EQ(loaded.Predict(PaddedWords()).ToVector<float>(), model.Predict(PaddedWords()).ToVector<float>());
}

TEST(MaskSavingTest, NamesThatKerasNeedsForItsMasks) {
  const testing::TempFolder folder;
  const std::string path = folder / "model.keras";
  for (const bool masked : {false, true}) {
    const LayerTensor x = Input(Shape{4}, {.dtype = DType::kInt64});
    const LayerTensor words = Embedding(4, 3, {.mask_zero = masked})(x);
    const LayerTensor joined = Concatenate({.axis = 1})({words, Dense(3)(words)});
    Model model({x}, {Concatenate({.name = "own"})({SimpleRNN(2)(joined), GlobalAveragePooling1D()(joined)})});
    model.Save(path);
    const bool renamed = ReadModelArchive(path).config.find("\"concatenate_layer\"") != std::string::npos;
    EXPECT_EQ(renamed, masked);
    Model loaded = LoadModel(path);
    EXPECT_EQ(loaded.Predict(PaddedWords()).ToVector<float>(), model.Predict(PaddedWords()).ToVector<float>());
  }
}

}  // namespace
}  // namespace cohort::keras
