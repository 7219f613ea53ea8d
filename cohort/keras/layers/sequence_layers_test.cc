// The layers of sequence_layers.h, the transposed convolutions, and the layers that crop, pad and enlarge.
#include "cohort/keras/layers/sequence_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/noise_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor SequenceOf(const std::vector<float>& values, const Shape& shape) { return Tensor::FromValues(values, shape); }

std::vector<std::string> SpecsOf(const LayerRef& layer, const Shape& example) {
  std::vector<std::string> texts;
  for (const WeightSpec& spec : layer->Build({{DType::kFloat32, Shape{-1}.Concat(example)}})) {
    texts.push_back(spec.name + spec.shape.ToString());
  }
  return texts;
}

TEST(SequenceLayersTest, Conv1D) {
  const Tensor steps = Counting(Shape{1, 4, 1});
  const Tensor kernel = SequenceOf({1, 10}, Shape{2, 1, 1}), bias = SequenceOf({100}, Shape{1});
  const auto run = [&](const Conv1DOptions& options) {
    return RunLayer(Conv1D(1, 2, options), steps, {kernel, bias}).ToVector<float>();
  };
  EXPECT_THAT(run({}), ElementsAre(110, 121, 132));
  EXPECT_THAT(run({.strides = 2}), ElementsAre(110, 132));
  EXPECT_THAT(run({.padding = "same"}), ElementsAre(110, 121, 132, 103));
  EXPECT_THAT(run({.padding = "causal"}), ElementsAre(100, 110, 121, 132));
  EXPECT_THAT(run({.padding = "causal", .dilation_rate = 2}), ElementsAre(100, 110, 120, 131));
  EXPECT_THAT(SpecsOf(Conv1D(6, 3, {.groups = 2}), Shape{9, 4}), ElementsAre("kernel[3,2,6]", "bias[6]"));
  EXPECT_EQ(ShapeAfter(Conv1D(6, 3, {.strides = 2}), Shape{-1, 4}), (Shape{-1, -1, 6}));
}

TEST(SequenceLayersTest, WhatDoesNotFitNamesTheLayer) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Conv1D(6, 3), Shape{9, 4, 2});
              }),
              AllOf(HasSubstr("rank 3 [batch, steps, channels]"), HasSubstr("layer 'conv1d' (Conv1D)")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Conv1D(6, 3, {.groups = 4}); }),
              HasSubstr("[keras/conv1d] expected filters > 0 in groups of equal size; got 6 filters, 4 groups"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Conv1D(6, 0); }), HasSubstr("positive kernel size; got 1 x 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { DepthwiseConv1D(2, {.padding = "causal"}); }),
              HasSubstr("'valid' or 'same'; got 'causal'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { MaxPooling1D(0); }), HasSubstr("[keras/pooling1d]"));
}

TEST(SequenceLayersTest, DepthwiseAndSeparableConv1D) {
  // Channel c, multiplier m: kernel 10 c + m + 1.
  const Tensor kernel = SequenceOf({1, 2, 11, 12}, Shape{1, 2, 2});
  const Tensor x = SequenceOf({1, 3, 2, 1}, Shape{1, 2, 2});
  EXPECT_THAT(RunLayer(DepthwiseConv1D(1, {.depth_multiplier = 2, .use_bias = false}), x, {kernel}).ToVector<float>(),
              ElementsAre(1, 2, 33, 36, 2, 4, 11, 12));
  const Tensor pointwise = SequenceOf({1, 1, 1, 2}, Shape{1, 4, 1}), bias = SequenceOf({0.5f}, Shape{1});
  EXPECT_THAT(RunLayer(SeparableConv1D(1, 1, {.depth_multiplier = 2}), x, {kernel, pointwise, bias}).ToVector<float>(),
              ElementsAre(108.5f, 41.5f));
  EXPECT_THAT(SpecsOf(SeparableConv1D(16, 3, {.depth_multiplier = 2}), Shape{9, 4}),
              ElementsAre("depthwise_kernel[3,4,2]", "pointwise_kernel[1,8,16]", "bias[16]"));
}

TEST(SequenceLayersTest, Conv2DTranspose) {
  // Each pixel adds its multiple of the kernel, two rows and columns from the next one.
  const Tensor kernel = SequenceOf({1, 2, 3, 4}, Shape{2, 2, 1, 1});
  const Tensor image = SequenceOf({1, 10}, Shape{1, 1, 2, 1});
  const auto run = [&](Conv2DTransposeOptions options) {
    options.use_bias = false;
    return RunLayer(Conv2DTranspose(1, 2, options), image, {kernel}).ToVector<float>();
  };
  EXPECT_THAT(run({.strides = 2}), ElementsAre(1, 2, 10, 20, 3, 4, 30, 40));
  EXPECT_THAT(run({}), ElementsAre(1, 12, 20, 3, 34, 40));
  EXPECT_THAT(run({.padding = "same"}), ElementsAre(1, 12));
  EXPECT_THAT(run({.dilation_rate = {1, 2}}), ElementsAre(1, 10, 2, 20, 3, 30, 4, 40));
  EXPECT_THAT(run({.strides = {1, 3}}), ElementsAre(1, 2, 0, 10, 20, 0, 3, 4, 0, 30, 40, 0));
  EXPECT_THAT(SpecsOf(Conv2DTranspose(8, {3, 5}), Shape{4, 4, 2}), ElementsAre("kernel[3,5,8,2]", "bias[8]"));
  const Tensor bias = SequenceOf({5}, Shape{1});
  EXPECT_THAT(RunLayer(Conv2DTranspose(1, 2, {.padding = "same", .activation = "relu"}), image, {kernel, bias})
                  .ToVector<float>(),
              ElementsAre(6, 17));
}

// The sizes that Keras computes: (input - 1) * strides + the kernel, and so on.
TEST(SequenceLayersTest, SizesOfTransposedConvolutions) {
  const auto after = [](int64_t kernel, const Conv2DTransposeOptions& options) {
    return ShapeAfter(Conv2DTranspose(8, kernel, options), Shape{4, 5, 2});
  };
  EXPECT_EQ(after(3, {}), (Shape{-1, 6, 7, 8}));
  EXPECT_EQ(after(3, {.strides = 2}), (Shape{-1, 9, 11, 8}));
  EXPECT_EQ(after(2, {.strides = 3}), (Shape{-1, 12, 15, 8}));
  EXPECT_EQ(after(2, {.strides = 3, .output_padding = RowsColumns(0, 2)}), (Shape{-1, 11, 16, 8}));
  EXPECT_EQ(after(3, {.strides = 2, .padding = "same"}), (Shape{-1, 8, 10, 8}));
  EXPECT_EQ(after(3, {.strides = 2, .padding = "same", .output_padding = RowsColumns(0, 1)}), (Shape{-1, 7, 10, 8}));
  EXPECT_EQ(after(3, {.dilation_rate = 2}), (Shape{-1, 8, 9, 8}));
  EXPECT_EQ(ShapeAfter(Conv1DTranspose(3, 2, {.strides = 3, .output_padding = 2}), Shape{4, 2}), (Shape{-1, 13, 3}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { after(3, {.strides = 2, .output_padding = RowsColumns(2)}); }),
              HasSubstr("below the strides 2 x 2; got 2 x 2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Conv1DTranspose(8, 3, {.output_padding = 1}); }),
              HasSubstr("[keras/conv1d_transpose]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { after(3, {.strides = 2, .dilation_rate = 2}); }),
              HasSubstr("strides or a dilation_rate of 1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { after(2, {.strides = 2, .padding = "same", .output_padding = RowsColumns(0)}); }),
              AllOf(HasSubstr("a result of 7 to 8; got 0, which gives 6"), HasSubstr("layer 'conv2d_transpose'")));
}

TEST(SequenceLayersTest, Conv1DTranspose) {
  const Tensor kernel = SequenceOf({1, 2, 3}, Shape{3, 1, 1}), bias = SequenceOf({100}, Shape{1});
  const Tensor steps = SequenceOf({1, 10}, Shape{1, 2, 1});
  EXPECT_THAT(RunLayer(Conv1DTranspose(1, 3, {.strides = 2}), steps, {kernel, bias}).ToVector<float>(),
              ElementsAre(101, 102, 113, 120, 130));
}

TEST(SequenceLayersTest, Pools) {
  const Tensor steps = SequenceOf({1, -1, 5, 3, 2, 8}, Shape{1, 3, 2});
  EXPECT_THAT(RunLayer(MaxPooling1D(), steps).ToVector<float>(), ElementsAre(5, 3));
  EXPECT_THAT(RunLayer(MaxPooling1D(2, {.strides = 1}), steps).ToVector<float>(), ElementsAre(5, 3, 5, 8));
  EXPECT_THAT(RunLayer(AveragePooling1D(2, {.padding = "same"}), steps).ToVector<float>(), ElementsAre(3, 1, 2, 8));
  EXPECT_EQ(ShapeAfter(MaxPooling1D(3), Shape{7, 5}), (Shape{-1, 2, 5}));
  EXPECT_THAT(RunLayer(GlobalMaxPooling1D(), steps).ToVector<float>(), ElementsAre(5, 8));
  EXPECT_EQ(ShapeAfter(GlobalMaxPooling1D({.keepdims = true}), Shape{3, 4}), (Shape{-1, 1, 4}));
}

TEST(SequenceLayersTest, UpSampling) {
  const Tensor image = SequenceOf({1, 2, 3, 4}, Shape{1, 2, 2, 1});
  EXPECT_THAT(RunLayer(UpSampling2D({1, 2}), image).ToVector<float>(), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(RunLayer(UpSampling2D({2, 1}), image).ToVector<float>(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(RunLayer(UpSampling1D(3), Counting(Shape{1, 2, 2})).ToVector<float>(),
              ElementsAre(0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3));
  EXPECT_THAT(RunLayer(UpSampling2D({1, 2}, {.interpolation = "bilinear"}), image).ToVector<float>(),
              Pointwise(FloatNear(1e-6f), std::vector<float>{1, 1.25f, 1.75f, 2, 3, 3.25f, 3.75f, 4}));
  EXPECT_THAT(RunLayer(UpSampling2D({3, 1}, {.interpolation = "bilinear"}), image).ToVector<float>(),
              Pointwise(FloatNear(1e-6f), std::vector<float>{1, 2, 1, 2, 1 + 2.0f / 3, 2 + 2.0f / 3, 2 + 1.0f / 3,
                                                             3 + 1.0f / 3, 3, 4, 3, 4}));
  EXPECT_EQ(ShapeAfter(UpSampling2D({2, 3}, {.interpolation = "bilinear"}), Shape{4, 5, 2}), (Shape{-1, 8, 15, 2}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { UpSampling2D(2, {.interpolation = "bicubic"}); }),
              HasSubstr("'nearest' or 'bilinear'; got 'bicubic'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { UpSampling1D(0); }), HasSubstr("positive size; got 0"));
}

TEST(SequenceLayersTest, CroppingAndPadding) {
  const Tensor image = Counting(Shape{1, 3, 3, 1});
  EXPECT_THAT(RunLayer(Cropping2D({{1, 0}, {0, 2}}), image).ToVector<float>(), ElementsAre(3, 6));
  EXPECT_THAT(RunLayer(Cropping2D(1), image).ToVector<float>(), ElementsAre(4));
  EXPECT_EQ(ShapeAfter(Cropping2D(), Shape{3, 4, 5}), (Shape{-1, 3, 4, 5}));
  const Tensor steps = Counting(Shape{1, 4, 1}, 1);
  EXPECT_THAT(RunLayer(Cropping1D(), steps).ToVector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(RunLayer(Cropping1D({2, 0}), steps).ToVector<float>(), ElementsAre(3, 4));
  EXPECT_THAT(RunLayer(ZeroPadding1D({1, 2}), steps).ToVector<float>(), ElementsAre(0, 1, 2, 3, 4, 0, 0));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Cropping2D({1, 2}), Shape{3, 4, 1});
              }),
              HasSubstr("a cropping below 4 of axis 2 of the input [?,3,4,1]; got 2, 2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Cropping1D({-1, 0}); }), HasSubstr("at least 0; got -1, 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ZeroPadding1D(-1); }),
              HasSubstr("[keras/zero_padding1d] expected a padding of at least 0; got -1, -1"));
}

TEST(SequenceLayersTest, RepeatVector) {
  const Tensor y = RunLayer(RepeatVector(2), Counting(Shape{2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { RepeatVector(0); }), HasSubstr("n > 0; got 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ShapeAfter(RepeatVector(2), Shape{2, 2}); }), HasSubstr("rank 2"));
}

// Returns a model with all layers of this file and of noise_layers.h, and with options that are not the defaults.
Model EveryLayer(const ModelOptions& options) {
  const LayerTensor x = Input(Shape{4, 6, 2});
  const LayerTensor large = Conv2DTranspose(4, {3, 2},
                                            {.strides = {2, 3},
                                             .padding = "same",
                                             .output_padding = RowsColumns(1, 2),
                                             .activation = "tanh",
                                             .use_bias = false,
                                             .kernel_initializer = "he_normal"})(x);  // [8, 17, 4]
  const LayerTensor dilated = Conv2DTranspose(2, 2, {.dilation_rate = {1, 2}, .bias_regularizer = "l2"})(large);
  const LayerTensor cropped = Cropping2D({{1, 2}, {3, 0}})(dilated);  // [6, 16, 2]
  const LayerTensor up = UpSampling2D({1, 2}, {.interpolation = "bilinear"})(UpSampling2D({2, 1})(cropped));
  const LayerTensor norm = UnitNormalization({.axis = {1, 2}})(GroupNormalization(2, {.epsilon = 0.1})(up));
  const LayerTensor slopes = ELU({.alpha = 0.5})(PReLU({.shared_axes = {1, 2}})(SpatialDropout2D(0.5)(norm)));
  const LayerTensor steps = UpSampling1D(3)(ZeroPadding1D({1, 2})(Cropping1D({2, 1})(Reshape({12, 64})(slopes))));
  const LayerTensor conv = Conv1D(6, 3, {.padding = "causal", .dilation_rate = 2, .groups = 2})(steps);
  const LayerTensor depthwise = DepthwiseConv1D(2, {.strides = 2, .depth_multiplier = 2, .activation = "relu"})(conv);
  const LayerTensor separable = SeparableConv1D(4, 2, {.padding = "same", .depth_multiplier = 3})(depthwise);
  const LayerTensor transposed = Conv1DTranspose(3, 2, {.strides = 2, .output_padding = 1})(separable);
  const LayerTensor pooled = AveragePooling1D(3, {.strides = 1, .padding = "same"})(MaxPooling1D(2)(transposed));
  const LayerTensor noisy = AlphaDropout(0.1, {.seed = 5})(GaussianDropout(0.2)(GaussianNoise(0.3)(pooled)));
  const LayerTensor most = GlobalMaxPooling1D()(SpatialDropout1D(0.25)(noisy));
  const LayerTensor dots = Dot({2, 1}, {.normalize = true})({RepeatVector(2)(most), most});
  return Model({x}, {dots, GlobalMaxPooling1D({.keepdims = true})(noisy)}, options);
}

TEST(SequenceLayersTest, FilesKeepTheOptions) {
  const testing::TempFolder folder;
  const Model model = EveryLayer({.seed = 3});
  model.Save(folder / "a.keras");
  const Model loaded = LoadModel(folder / "a.keras");
  loaded.Save(folder / "b.keras");
  EXPECT_EQ(ReadModelArchive(folder / "a.keras").config, ReadModelArchive(folder / "b.keras").config);
  EXPECT_EQ(loaded.WeightNames(), model.WeightNames());
  const ModelData data({Counting(Shape{2, 4, 6, 2}, -1, 0.03f)}, std::vector<Tensor>{});
  const std::vector<Tensor> mine = Model(model).PredictAll(data), theirs = Model(loaded).PredictAll(data);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(mine[i].ToVector<float>(), theirs[i].ToVector<float>());
}

TEST(SequenceLayersTest, TrainsInBothPrecisions) {
  for (const char* policy : {"float32", "mixed_bfloat16"}) {
    Model model = EveryLayer({.dtype_policy = policy, .seed = 3});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "mse"});
    const ModelData data({Counting(Shape{2, 4, 6, 2}, -1, 0.03f)},
                         {Counting(Shape{2, 2}, 1, 0.25f), Counting(Shape{2, 1, 3}, -1, 0.5f)});
    const std::vector<Tensor> before = model.GetWeights();
    const double first = model.TrainOnBatch(data)[0].second;
    double last = first;
    for (int step = 0; step < 20; ++step) {
      model.ResetMetrics();
      last = model.TrainOnBatch(data)[0].second;
    }
    EXPECT_LT(last, 0.8 * first) << policy;
    const std::vector<Tensor> after = model.GetWeights();
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_NE(after[i].ToVector<float>(), before[i].ToVector<float>()) << policy << " " << model.WeightNames()[i];
    }
  }
}

}  // namespace
}  // namespace cohort::keras
