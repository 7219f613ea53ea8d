// What a program for Keras 2 types: input_shape on the first layer, the short names of pools, images of float64 with
// labels of uint8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/core/testing/throws.h"
#include "cohort/data/readers/datasets.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/model.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string SummaryText(Model& model) {
  std::ostringstream text;
  model.Summary(text);
  return text.str();
}

TEST(InputShapeTest, TheFirstLayersShapeBuildsTheModelAsAnInputDoes) {
  const ModelOptions named{.name = "m"};
  Sequential model({}, named);
  model.Add(Conv2D(4, 3, {.padding = "same", .activation = "selu", .input_shape = Shape{28, 28, 1}}));
  model.Add(MaxPool2D(2));
  model.Add(Flatten());
  model.Add(Dense(10, {.activation = "softmax"}));
  Sequential same({Input(Shape{28, 28, 1}), Conv2D(4, 3, {.padding = "same", .activation = "selu"}), MaxPooling2D(2),
                   Flatten(), Dense(10, {.activation = "softmax"})},
                  named);
  EXPECT_EQ(SummaryText(model), SummaryText(same));
  EXPECT_THAT(SummaryText(model), HasSubstr("Total params: 7,890"));  // 4 * 10 + (14 * 14 * 4 + 1) * 10
}

TEST(InputShapeTest, EveryLayerThatMayComeFirstTakesIt) {
  const auto outputs = [](const LayerRef& first) {
    Sequential model({first});
    return model.outputs().at(0).shape();
  };
  EXPECT_EQ(outputs(Dense(3, {.input_shape = Shape{5}})), (Shape{-1, 3}));
  EXPECT_EQ(outputs(Flatten({.input_shape = Shape{28, 28}})), (Shape{-1, 784}));
  EXPECT_EQ(outputs(Reshape({2, 3}, {.input_shape = Shape{6}})), (Shape{-1, 2, 3}));
  EXPECT_EQ(outputs(Activation("relu", {.input_shape = Shape{4}})), (Shape{-1, 4}));
  EXPECT_EQ(outputs(SeparableConv2D(6, 3, {.input_shape = Shape{8, 8, 2}})), (Shape{-1, 6, 6, 6}));
  EXPECT_EQ(outputs(DepthwiseConv2D(3, {.input_shape = Shape{8, 8, 2}})), (Shape{-1, 6, 6, 2}));
}

TEST(InputShapeTest, AShapeThatNothingWouldReadIsAnError) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Sequential({Dense(3, {.input_shape = Shape{5}}), Dense(2, {.input_shape = Shape{3}})});
              }),
              AllOf(HasSubstr("input_shape only for the first layer"), HasSubstr("[3]"), HasSubstr("Dense")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Sequential({Input(Shape{5}), Dense(2, {.input_shape = Shape{5}})});
              }),
              HasSubstr("input_shape only for the first layer"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Dense(2, {.input_shape = Shape{3}})(Input(Shape{5})); }),
              AllOf(HasSubstr("input_shape [3]"), HasSubstr("[?,5]")));
  EXPECT_EQ(Dense(2, {.input_shape = Shape{5}})(Input(Shape{5})).shape(), (Shape{-1, 2}));
}

TEST(InputShapeTest, ShortNamesMakeTheSameLayers) {
  EXPECT_EQ(MaxPool2D(3, {.strides = 2}).layer().class_name(), "MaxPooling2D");
  EXPECT_EQ(AvgPool2D().layer().class_name(), "AveragePooling2D");
  EXPECT_EQ(AvgPool2D(3, {.strides = 2})(Input(Shape{9, 9, 1})).shape(), (Shape{-1, 4, 4, 1}));
}

// As guide-004's data are: sklearn's scaler gives float64, and the files have labels of uint8.
TEST(InputShapeTest, ImagesOfFloat64WithLabelsOfUint8AreTrainedOn) {
  const data::ImageDataset images = data::GeneratedImages(1, 64, 16);
  const auto wide = [](const Tensor& pixels) {
    Tensor tensor(DType::kFloat64, Shape{pixels.shape().dim(0), 28, 28, 1});
    for (int64_t i = 0; i < pixels.num_elements(); ++i) tensor.data<double>()[i] = pixels.data<uint8_t>()[i] / 255.0;
    return tensor;
  };
  const auto dataset = [&](const Tensor& x, const Tensor& y) { return data::Dataset::FromTensorSlices({wide(x), y}); };
  Sequential model({Flatten({.input_shape = Shape{28, 28, 1}}), Dense(10, {.activation = "softmax"})});
  model.Compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  FitOptions options;
  options.verbose = 0;
  options.epochs = 2;
  options.steps_per_epoch = 4;
  options.validation_data = dataset(images.test_images, images.test_labels).Batch(16);
  const History history = model.Fit(
      dataset(images.train_images, images.train_labels).Shuffle(64).Repeat(2).Batch(16).Prefetch(50), options);
  EXPECT_THAT(history["val_accuracy"], SizeIs(2));
  EXPECT_LT(history["loss"][1], history["loss"][0]);
}

}  // namespace
}  // namespace cohort::keras
