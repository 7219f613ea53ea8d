// Every layer: its weights, what it computes, what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/arithmetic.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Floats = std::vector<float>;

Tensor Values(const Floats& values, const Shape& shape) { return Tensor::FromValues(values, shape); }

std::vector<std::string> WeightsOf(const LayerRef& layer, const Shape& example) {
  std::vector<std::string> texts;
  for (const WeightSpec& spec : layer->Build({{DType::kFloat32, Shape{-1}.Concat(example)}})) {
    texts.push_back(spec.name + spec.shape.ToString() + (spec.trainable ? "" : " fixed"));
  }
  return texts;
}

TEST(LayersTest, Dense) {
  const Tensor kernel = Values({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  const Tensor bias = Values({0, -100, 1}, Shape{3});
  const Tensor y = RunLayer(Dense(3, {.activation = "relu"}), Values({1, 1, 2, 0}, Shape{2, 2}), {kernel, bias});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(5, 0, 10, 2, 0, 7));
  EXPECT_THAT(WeightsOf(Dense(3), Shape{4}), ElementsAre("kernel[4,3]", "bias[3]"));
  EXPECT_THAT(WeightsOf(Dense(3, {.use_bias = false}), Shape{4}), ElementsAre("kernel[4,3]"));
}

TEST(LayersTest, DenseWorksOnTheLastAxis) {
  const Tensor kernel = Values({1, 10}, Shape{2, 1});
  const Tensor y = RunLayer(Dense(1, {.use_bias = false}), Counting(Shape{2, 2, 2}), {kernel});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 1}));
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(10, 32, 54, 76));
}

TEST(LayersTest, Conv2D) {
  const Tensor image = Counting(Shape{1, 3, 3, 1});
  const Tensor sum = Tensor::FromValues(Floats(4, 1.0f), Shape{2, 2, 1, 1});
  const Tensor bias = Values({100}, Shape{1});
  EXPECT_THAT(RunLayer(Conv2D(1, 2), image, {sum, bias}).ToVector<float>(), ElementsAre(108, 112, 120, 124));
  // "same" with an even window: the padding comes after.
  EXPECT_THAT(RunLayer(Conv2D(1, 2, {.padding = "same"}), image, {sum, bias}).ToVector<float>(),
              ElementsAre(108, 112, 107, 120, 124, 113, 113, 115, 108));
  EXPECT_EQ(ShapeAfter(Conv2D(8, {3, 5}, {.strides = 2}), Shape{28, 28, 4}), (Shape{-1, 13, 12, 8}));
  EXPECT_EQ(ShapeAfter(Conv2D(8, 3, {.strides = {2, 1}, .padding = "same"}), Shape{27, 27, 4}), (Shape{-1, 14, 27, 8}));
  EXPECT_EQ(ShapeAfter(Conv2D(8, 3, {.dilation_rate = 2}), Shape{9, 9, 4}), (Shape{-1, 5, 5, 8}));
  EXPECT_THAT(WeightsOf(Conv2D(8, {3, 5}, {.groups = 2}), Shape{9, 9, 4}), ElementsAre("kernel[3,5,2,8]", "bias[8]"));
}

TEST(LayersTest, DepthwiseChannelsStayApart) {
  // Channel c, multiplier m: kernel 10 c + m + 1, one by one.
  const Tensor kernel = Values({1, 2, 11, 12}, Shape{1, 1, 2, 2});
  const Tensor y = RunLayer(DepthwiseConv2D(1, {.depth_multiplier = 2, .use_bias = false}),
                            Values({1, 3}, Shape{1, 1, 1, 2}), {kernel});
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(1, 2, 33, 36));
  EXPECT_THAT(WeightsOf(DepthwiseConv2D(3, {.depth_multiplier = 2}), Shape{9, 9, 4}),
              ElementsAre("kernel[3,3,4,2]", "bias[8]"));
}

TEST(LayersTest, SeparableConv2D) {
  const Tensor depthwise = Values({2, 3}, Shape{1, 1, 2, 1});
  const Tensor pointwise = Values({1, 0, 1, 1, 1, -1}, Shape{1, 1, 2, 3});
  const Tensor bias = Values({0, 0, 0.5}, Shape{3});
  // After the depthwise part: 2, 9.
  const Tensor y = RunLayer(SeparableConv2D(3, 1, {.activation = "relu"}), Values({1, 3}, Shape{1, 1, 1, 2}),
                            {depthwise, pointwise, bias});
  EXPECT_THAT(y.ToVector<float>(), ElementsAre(11, 9, 0));
  EXPECT_THAT(WeightsOf(SeparableConv2D(16, 3, {.depth_multiplier = 2}), Shape{9, 9, 4}),
              ElementsAre("depthwise_kernel[3,3,4,2]", "pointwise_kernel[1,1,8,16]", "bias[16]"));
}

// Variance of uniform initial values: glorot 2 / (fan_in + fan_out).
double InitialVariance(const LayerRef& layer) {
  const LayerTensor input = Input(Shape{8, 8, 64});
  Model model({input}, {layer(input)});
  double sum = 0;
  const Tensor kernel = model.GetWeights()[0];
  for (const float value : kernel.values<float>()) sum += static_cast<double>(value) * value;
  return sum / static_cast<double>(kernel.num_elements());
}

TEST(LayersTest, DepthwiseFansAreTrueUnlessKerasIsAskedFor) {
  EXPECT_NEAR(InitialVariance(DepthwiseConv2D(3)), 2.0 / (9 + 9), 0.01);
  EXPECT_NEAR(InitialVariance(SeparableConv2D(8, 3)), 2.0 / (9 + 9), 0.01);
  EXPECT_NEAR(InitialVariance(DepthwiseConv2D(3, {.depth_multiplier = 2})), 2.0 / (9 + 18), 0.007);
  const double keras = 2.0 / (9 * 64 + 9);
  EXPECT_NEAR(InitialVariance(DepthwiseConv2D(3, {.depthwise_fans = DepthwiseFans::kKeras})), keras, keras / 8);
  EXPECT_NEAR(InitialVariance(SeparableConv2D(8, 3, {.depthwise_fans = DepthwiseFans::kKeras})), keras, keras / 8);
}

TEST(LayersTest, Pools) {
  const Tensor image = Counting(Shape{1, 4, 4, 1});
  EXPECT_THAT(RunLayer(MaxPooling2D(), image).ToVector<float>(), ElementsAre(5, 7, 13, 15));
  EXPECT_THAT(RunLayer(AveragePooling2D(), image).ToVector<float>(), ElementsAre(2.5, 4.5, 10.5, 12.5));
  EXPECT_THAT(RunLayer(MaxPooling2D({2, 1}, {.strides = RowsColumns(2, 2)}), image).ToVector<float>(),
              ElementsAre(4, 6, 12, 14));
  EXPECT_EQ(ShapeAfter(MaxPooling2D(3, {.padding = "same"}), Shape{7, 7, 5}), (Shape{-1, 3, 3, 5}));
  EXPECT_THAT(RunLayer(GlobalAveragePooling2D(), Counting(Shape{1, 2, 2, 2})).ToVector<float>(), ElementsAre(3, 4));
  EXPECT_EQ(ShapeAfter(GlobalAveragePooling2D({.keepdims = true}), Shape{7, 7, 5}), (Shape{-1, 1, 1, 5}));
}

TEST(LayersTest, Shapes) {
  EXPECT_EQ(RunLayer(Flatten(), Counting(Shape{2, 2, 3})).shape(), (Shape{2, 6}));
  EXPECT_EQ(ShapeAfter(Flatten(), Shape{}), (Shape{-1, 1}));
  EXPECT_EQ(RunLayer(Reshape({3, -1}), Counting(Shape{2, 6})).shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Reshape({4, -1}), Shape{6});
              }),
              AllOf(HasSubstr("6 elements"), HasSubstr("[4,-1]"), HasSubstr("layer 'reshape' (Reshape)")));
}

TEST(LayersTest, AddAndConcatenate) {
  const LayerTensor a = Input(Shape{2}), b = Input(Shape{2});
  Model sum({a, b}, {Add()({a, b})});
  Model joined({a, b}, {Concatenate()({a, b})});
  const ModelData data({Values({1, 2}, Shape{1, 2}), Values({3, 4}, Shape{1, 2})}, std::vector<Tensor>{});
  EXPECT_THAT(sum.PredictAll(data)[0].ToVector<float>(), ElementsAre(4, 6));
  EXPECT_THAT(joined.PredictAll(data)[0].ToVector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Add()(a); }), HasSubstr("two inputs or more; got 1"));
}

TEST(LayersTest, Embedding) {
  const Tensor rows = Counting(Shape{4, 2});
  const Tensor indices = Tensor::FromValues(std::vector<int64_t>{3, 0, 1}, Shape{1, 3});
  EXPECT_THAT(RunLayer(Embedding(4, 2), indices, {rows}).ToVector<float>(), ElementsAre(6, 7, 0, 1, 2, 3));
  const Tensor outside = Tensor::FromValues(std::vector<int64_t>{4}, Shape{1, 1});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { RunLayer(Embedding(4, 2), outside, {rows}); }), HasSubstr("4"));
}

TEST(LayersTest, DropoutAndInferenceAreTheSame) {
  EXPECT_THAT(RunLayer(Dropout(0.9), Counting(Shape{1, 4})).ToVector<float>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Dropout(1.0); }), HasSubstr("rate in [0, 1); got 1"));
}

TEST(LayersTest, BatchNormalizationInInference) {
  const std::vector<Tensor> weights = {Values({2, 1}, Shape{2}), Values({0, 10}, Shape{2}), Values({1, 2}, Shape{2}),
                                       Values({4, 1}, Shape{2})};
  const LayerRef layer = BatchNormalization({.epsilon = 0});
  EXPECT_THAT(RunLayer(layer, Values({3, 4}, Shape{1, 2}), weights).ToVector<float>(),
              Pointwise(FloatNear(1e-5f), Floats{2, 12}));
  EXPECT_THAT(RunLayer(layer, Values({3, 4}, Shape{1, 1, 1, 2}), weights).ToVector<float>(),
              Pointwise(FloatNear(1e-5f), Floats{2, 12}));
  EXPECT_THAT(WeightsOf(BatchNormalization(), Shape{7, 7, 3}),
              ElementsAre("gamma[3]", "beta[3]", "moving_mean[3] fixed", "moving_variance[3] fixed"));
  EXPECT_THAT(WeightsOf(BatchNormalization({.center = false, .scale = false}), Shape{3}),
              ElementsAre("moving_mean[3] fixed", "moving_variance[3] fixed"));
}

TEST(LayersTest, LayerNormalization) {
  const Tensor y = RunLayer(LayerNormalization({.epsilon = 0}), Values({1, 3, 10, 10.5}, Shape{2, 2}),
                            {Values({1, 2}, Shape{2}), Values({0, 1}, Shape{2})});
  EXPECT_THAT(y.ToVector<float>(), Pointwise(FloatNear(1e-4f), Floats{-1, 3, -1, 3}));
}

TEST(LayersTest, LayerNormalizationWithoutWeights) {
  const LayerRef layer = LayerNormalization({.epsilon = 3, .center = false, .scale = false});
  EXPECT_THAT(WeightsOf(layer, Shape{2, 2}), ElementsAre());
  // The variance of the rows is 1, so that they are divided by sqrt(1 + 3).
  const Tensor y = RunLayer(layer, Values({1, 3, 10, 12}, Shape{1, 2, 2}), {});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2}));
  EXPECT_THAT(y.ToVector<float>(), Pointwise(FloatNear(1e-6f), Floats{-0.5f, 0.5f, -0.5f, 0.5f}));
}

TEST(LayersTest, Activations) {
  const Tensor x = Values({-2, 0, 1}, Shape{1, 3});
  const auto run = [&](const char* name) { return RunLayer(Activation(name), x).ToVector<float>(); };
  const auto near = [](const Floats& values) { return Pointwise(FloatNear(1e-5f), values); };
  EXPECT_THAT(run("linear"), near({-2, 0, 1}));
  EXPECT_THAT(run("relu"), near({0, 0, 1}));
  EXPECT_THAT(run("leaky_relu"), near({-0.4f, 0, 1}));
  EXPECT_THAT(run("gelu"), near({-0.0455003f, 0, 0.8413447f}));
  EXPECT_THAT(run("selu"), near({-1.520167f, 0, 1.050701f}));
  EXPECT_THAT(run("softsign"), near({-2.0f / 3, 0, 0.5f}));
  EXPECT_THAT(run("hard_sigmoid"), near({1.0f / 6, 0.5f, 4.0f / 6}));
  EXPECT_THAT(run("softmax"), near({0.0351190f, 0.2594965f, 0.7053845f}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Activation("rellu"); }),
              AllOf(HasSubstr("'rellu'"), HasSubstr("relu, relu6")));
  for (const std::string& name : ActivationNames()) {
    EXPECT_EQ(RunLayer(Activation(name), x).shape(), x.shape()) << name;
    EXPECT_EQ(ActivationFunction(name).name(), name);
  }
}

TEST(LayersTest, NamesByKeras) {
  EXPECT_EQ(Initializer("he_normal").name(), "HeNormal");
  EXPECT_EQ(Initializer("HeNormal").name(), "HeNormal");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Initializer("he"); }),
              AllOf(HasSubstr("'he'"), HasSubstr("he_normal")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Regularizer("l3"); }), HasSubstr("l1, l2, l1_l2; got 'l3'"));
}

TEST(LayersTest, WhatDoesNotFitNamesLayerAndShape) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Conv2D(8, 3), Shape{28, 28});
              }),
              AllOf(HasSubstr("rank 4 [batch, rows, columns, channels]"), HasSubstr("[?,28,28]"),
                    HasSubstr("layer 'conv2d' (Conv2D)"), HasSubstr("begin the model with Input(Shape{28,28,1})"),
                    HasSubstr("Reshape({28,28,1})")));
  // The advice is right.
  EXPECT_EQ(ShapeAfter(Reshape({28, 28, 1}), Shape{28, 28}), (Shape{-1, 28, 28, 1}));
  Sequential model({Input(Shape{6, 6, 1}), Conv2D(2, 3), Flatten()});
  EXPECT_EQ(model.Predict(Counting(Shape{2, 6, 6})).shape(), (Shape{2, 32}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ShapeAfter(Conv2D(8, 3), Shape{28}); }),
              ::testing::Not(HasSubstr("channel axis")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ShapeAfter(Conv2D(8, 30), Shape{28, 28, 1});
              }),
              HasSubstr("layer 'conv2d' (Conv2D)"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ShapeAfter(Dense(8), Shape{}); }), HasSubstr("[?]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Conv2D(6, 3, {.groups = 4}); }), HasSubstr("6 filters, 4 groups"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Conv2D(6, 3, {.padding = "full"}); }), HasSubstr("'full'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Dense(0); }), HasSubstr("units > 0; got 0"));
}

// A layer of a program's own, with a layer inside.
class Residual final : public Layer {
 public:
  explicit Residual(int64_t units) : Layer("Residual"), inner_(Dense(units, {.kernel_initializer = "ones"})) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>&) const override {
    return {{.name = "scale", .shape = Shape{}, .initializer = initializers::Constant(2)}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {inputs[0] + ctx.Call(*inner_, inputs[0]) * ctx.weight("scale")};
  }

 private:
  const LayerRef inner_;
};

TEST(LayersTest, ALayerOfOnesOwnWithALayerInside) {
  const LayerTensor input = Input(Shape{2});
  const LayerRef residual = MakeLayer<Residual>(2);
  Model model({input}, {residual(residual(input))});
  EXPECT_THAT(model.WeightNames(), ElementsAre("residual/scale", "residual/dense/kernel", "residual/dense/bias"));
  // (1, 2) + 2 (3, 3) = (7, 8); + 2 (15, 15).
  EXPECT_THAT(model.Predict(Values({1, 2}, Shape{1, 2})).ToVector<float>(), ElementsAre(37, 38));
}

// Its weights are declared where they are used.
class Affine final : public Layer {
 public:
  explicit Affine(bool same_shape = true) : Layer("Affine"), same_shape_(same_shape) {}
  Output Call(CallContext& ctx, Output x) const override {
    const int64_t in = x.shape().dim(1);
    const Output y = x * ctx.weight({.name = "factor", .shape = Shape{in}, .initializer = initializers::Constant(3)});
    ctx.weight({.name = "factor", .shape = same_shape_ ? Shape{in} : Shape{in + 1}});
    return y + ctx.weight({.name = "offset", .shape = Shape{in}, .initializer = "ones", .trainable = false});
  }

 private:
  const bool same_shape_;
};

TEST(LayersTest, ALayerOfOneFunctionDeclaresItsWeightsWhereItUsesThem) {
  const LayerTensor input = Input(Shape{2});
  const LayerRef affine = MakeLayer<Affine>();
  Model model({input}, {affine(affine(input))});
  EXPECT_THAT(model.WeightNames(), ElementsAre("affine/factor", "affine/offset"));
  EXPECT_THAT(model.TrainableWeightNames(), ElementsAre("affine/factor"));
  // 3 (3 x + 1) + 1.
  EXPECT_THAT(model.Predict(Values({1, 2}, Shape{1, 2})).ToVector<float>(), ElementsAre(13, 22));
}

class OnlyInTraining final : public Layer {
 public:
  OnlyInTraining() : Layer("OnlyInTraining") {}
  Output Call(CallContext& ctx, Output x) const override {
    return ctx.training() ? x * ctx.weight({.name = "late", .shape = Shape{}}) : x;
  }
};

class WithoutCall final : public Layer {
 public:
  WithoutCall() : Layer("WithoutCall") {}
};

TEST(LayersTest, WhatALayerOfOneFunctionRefuses) {
  const LayerTensor a = Input(Shape{2}), b = Input(Shape{2});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                MakeLayer<Affine>()({a, b});
              }),
              AllOf(HasSubstr("one input for a Affine layer; got 2"), HasSubstr("layer 'affine' (Affine)")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { MakeLayer<Affine>(false)(a); }),
              AllOf(HasSubstr("'affine/factor' has the shape [2]"), HasSubstr("need [3]")));
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { MakeLayer<WithoutCall>()(a); }),
              AllOf(HasSubstr("override Call"), HasSubstr("WithoutCall does not")));
  Sequential late({Input(Shape{2}), MakeLayer<OnlyInTraining>(), Dense(1)});
  late.Compile({.loss = "mse"});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                late.TrainOnBatch({Counting(Shape{4, 2}), Counting(Shape{4, 1})});
              }),
              AllOf(HasSubstr("'only_in_training/late'"), HasSubstr("in training and in inference")));
}

}  // namespace
}  // namespace cohort::keras
