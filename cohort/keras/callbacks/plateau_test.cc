// The network of examples/fashion_mnist, separable convolutions on images of ten classes, whose loss stays at ln 10,
// the loss of guessing, because Keras's rule for fans makes the initial depthwise kernels too small.
// DepthwiseFans::kKeras shows the same; DepthwiseFans::kTrue is all that it takes to learn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/data/readers/datasets.h"
#include "cohort/data/standard_scaler.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::SizeIs;

constexpr int kSteps = 20;
constexpr int64_t kBatch = 32;

ModelData PlateauImages() {
  const data::ImageDataset images = data::GeneratedImages(/*seed=*/1, kSteps * kBatch, /*test_n=*/0);
  data::StandardScaler scaler;
  scaler.Fit(images.train_images);
  return {scaler.Transform(images.train_images).Reshaped(Shape{kSteps * kBatch, 28, 28, 1}), images.train_labels};
}

Sequential PlateauNetwork(DepthwiseFans fans) {
  const auto separable = [&](int64_t filters) {
    return SeparableConv2D(filters, 3, {.padding = "same", .activation = "selu", .depthwise_fans = fans});
  };
  return Sequential(
      {Input(Shape{28, 28, 1}), Conv2D(128, 3, {.padding = "same", .activation = "selu"}), separable(128),
       MaxPooling2D(2), separable(256), separable(256), MaxPooling2D(2), separable(512), separable(512),
       MaxPooling2D(2), Flatten(), Dense(512, {.activation = "selu"}), Dense(10, {.activation = "softmax"})},
      {.seed = 1, .session = {.intra_op_parallelism_threads = 1}});
}

// The loss of each batch of an epoch, before its step.
std::vector<double> LossesOf(DepthwiseFans fans) {
  Sequential model = PlateauNetwork(fans);
  model.Compile({.optimizer = SGD({.learning_rate = 0.01}), .loss = "sparse_categorical_crossentropy"});
  std::vector<double> losses;
  const CallbackPtr note =
      LambdaCallback({.on_train_batch_end = [&](int64_t, const BatchLogs& logs) { losses.push_back(logs.loss()); }});
  model.Fit(PlateauImages(), {.batch_size = kBatch, .verbose = 0, .callbacks = {note}, .signal_check = false});
  return losses;
}

TEST(PlateauTest, KerasFansStayAtTheLossOfGuessingAndTrueFansLeaveIt) {
  const std::vector<double> stays = LossesOf(DepthwiseFans::kKeras), learns = LossesOf(DepthwiseFans::kTrue);
  EXPECT_NEAR(stays[0], std::log(10.0), 1e-4);
  EXPECT_THAT(stays, ::testing::AllOf(SizeIs(kSteps), Each(DoubleNear(std::log(10.0), 0.05))));
  ASSERT_THAT(learns, SizeIs(kSteps));
  EXPECT_LT((learns[kSteps - 1] + learns[kSteps - 2] + learns[kSteps - 3]) / 3, 0.8 * std::log(10.0))
      << ::testing::PrintToString(learns);
}

}  // namespace
}  // namespace cohort::keras
