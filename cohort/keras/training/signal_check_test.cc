#include "cohort/keras/training/signal_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Tensor Noise(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(std::sqrt(2.0) * std::sin(static_cast<double>(i * i % 7919)));
  }
  return tensor;
}

// A narrower sister of the network of examples/fashion_mnist.
std::unique_ptr<Sequential> Narrow(DepthwiseFans fans, bool normalized = false) {
  std::vector<SequentialItem> items = {Input(Shape{8, 8, 1}), Conv2D(64, 3, {.padding = "same", .activation = "selu"})};
  for (int i = 0; i < 4; ++i) {
    items.emplace_back(SeparableConv2D(64, 3, {.padding = "same", .activation = "selu", .depthwise_fans = fans}));
    if (normalized) items.emplace_back(BatchNormalization());
  }
  items.emplace_back(Flatten());
  items.emplace_back(Dense(10, {.activation = "softmax"}));
  auto model = std::make_unique<Sequential>(items, ModelOptions{.session = {.intra_op_parallelism_threads = 1}});
  model->Compile({.optimizer = SGD({.learning_rate = 0.05}), .loss = "sparse_categorical_crossentropy"});
  return model;
}

ModelData Images() {
  Tensor labels(DType::kInt32, Shape{16});
  for (int i = 0; i < 16; ++i) labels.data<int32_t>()[i] = i % 10;
  return {Noise(Shape{16, 8, 8, 1}), labels};
}

SignalReport Check(DepthwiseFans fans, bool normalized = false) {
  return Narrow(fans, normalized)->CheckSignal(Images(), 16);
}

TEST(SignalCheckTest, TrueFansKeepTheSignal) {
  const SignalReport report = Check(DepthwiseFans::kTrue);
  EXPECT_THAT(report.Problems(), IsEmpty());
  ASSERT_EQ(report.layers.size(), 8u);
  EXPECT_EQ(report.layers[0].class_name, "InputLayer");
  EXPECT_NEAR(report.layers[0].activation, 1, 0.05);
  EXPECT_TRUE(std::isnan(report.layers[0].gradient));
  EXPECT_EQ(report.layers[2].layer, "separable_conv2d");
  EXPECT_GT(report.layers[2].gradient, 0);
  EXPECT_GT(report.layers[2].weight_gradient, 0);
}

TEST(SignalCheckTest, KerasFansAreNamedWithTheRemedy) {
  const SignalReport report = Check(DepthwiseFans::kKeras);
  ASSERT_FALSE(report.Problems().empty());
  EXPECT_THAT(report.Problems()[0],
              AllOf(HasSubstr("collapses"), HasSubstr("separable_conv2d"), HasSubstr("DepthwiseFans::kTrue")));
  EXPECT_NEAR(report.loss, std::log(10.0), 1e-3);
  EXPECT_THAT(report.ToString(), AllOf(HasSubstr("separable_conv2d_3 (SeparableConv2D)"), HasSubstr("! the signal")));
}

// The guide's run: the loss stays where it began, at ln 10; with true fans the same steps halve it.
TEST(SignalCheckTest, WithKerasFansTheLossDoesNotMove) {
  const auto last_loss = [](DepthwiseFans fans) {
    return Narrow(fans)->Fit(Images(), {.batch_size = 16, .epochs = 15, .verbose = 0})["loss"].back();
  };
  EXPECT_NEAR(last_loss(DepthwiseFans::kKeras), std::log(10.0), 0.1);
  EXPECT_LT(last_loss(DepthwiseFans::kTrue), std::log(10.0) / 2);
}

TEST(SignalCheckTest, NormalizationKeepsTheSignalInSpiteOfKerasFans) {
  EXPECT_THAT(Check(DepthwiseFans::kKeras, /*normalized=*/true).Problems(), IsEmpty());
}

TEST(SignalCheckTest, LargeWeightsExplode) {
  Sequential model({Input(Shape{32}), Dense(32, {.kernel_initializer = initializers::RandomNormal(0, 30)}),
                    Dense(32, {.kernel_initializer = initializers::RandomNormal(0, 30)}), Dense(1)});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  const SignalReport report = model.CheckSignal(ModelData(Noise(Shape{8, 32}), Noise(Shape{8, 1})));
  ASSERT_FALSE(report.Problems().empty());
  EXPECT_THAT(report.Problems()[0], AllOf(HasSubstr("explodes"), HasSubstr("dense_1 (Dense)"), HasSubstr("he_normal"),
                                          Not(HasSubstr("DepthwiseFans"))));
}

TEST(SignalCheckTest, KernelsThatBeginAtZeroAreNoHarmButInputsAre) {
  Sequential model({Input(Shape{32}), Dense(1, {.kernel_initializer = "zeros"})});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(model.CheckSignal(ModelData(Noise(Shape{8, 32}), Noise(Shape{8, 1}))).Problems(), IsEmpty());
  const Tensor zeros = Tensor::Zeros(DType::kFloat32, Shape{8, 32});
  EXPECT_THAT(model.CheckSignal(ModelData(zeros, Noise(Shape{8, 1}))).Problems(), ElementsAre(HasSubstr("all zeros")));
}

TEST(SignalCheckTest, FitWarnsBeforeTheFirstStepAndChangesNothing) {
  const auto fit = [](bool check) {
    Sequential model(
        {Input(Shape{4}), Dense(4, {.kernel_initializer = initializers::RandomNormal(0, 1e-6)}), Dense(1)});
    model.Compile({.optimizer = "sgd", .loss = "mse"});
    model.Fit(Noise(Shape{8, 4}), Noise(Shape{8, 1}), {.verbose = 0, .signal_check = check});
    return model.GetWeights()[1].ToVector<float>();
  };
  ::testing::internal::CaptureStderr();
  const std::vector<float> checked = fit(true);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr("signal check"), HasSubstr("dense (Dense)")));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(fit(false), checked);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace cohort::keras
