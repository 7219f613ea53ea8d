// The SavedModels that models become. tests/interop/test_saved_model.py has TensorFlow predict with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/model.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/array.h"
#include "cohort/ops/control.h"
#include "cohort/ops/queues.h"

namespace cohort::keras {
namespace {

using saved_model::SavedModel;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pointwise;

Tensor Images(int64_t count) {
  Tensor images(DType::kFloat32, Shape{count, 6, 6, 2});
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    images.data<float>()[i] = static_cast<float>((i * 7) % 11) / 5.0f - 1.0f;
  }
  return images;
}

std::vector<SequentialItem> Layers() {
  return {Input(Shape{6, 6, 2}, {.name = "image"}),
          Conv2D(4, 3, {.activation = "tanh"}),
          BatchNormalization(),
          Flatten(),
          LayerNormalization(),
          Dropout(0.5),
          Dense(3)};
}

TEST(SavedModelExportTest, PredictsAsTheModel) {
  const testing::TempFolder folder;
  Sequential model(Layers());
  model.Compile({.optimizer = "adam", .loss = "mse"});
  Tensor y(DType::kFloat32, Shape{5, 3});
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<float>()[i] = 1.0f;
  for (int i = 0; i < 3; ++i) model.TrainOnBatch({Images(5), y});
  model.ExportSavedModel(folder / "model");
  const SavedModel loaded(folder / "model");
  EXPECT_THAT(loaded.signatures(), ElementsAre(Key("serve"), Key("serving_default")));
  const saved_model::SavedModelSignature& signature = loaded.signatures().at("serving_default");
  EXPECT_EQ(signature.inputs.at("image").shape(), (Shape{-1, 6, 6, 2}));
  EXPECT_EQ(signature.outputs.at("output_0").shape(), (Shape{-1, 3}));
  for (const int64_t count : {1, 5}) {
    const std::vector<float> wanted = model.Predict(Images(count)).ToVector<float>();
    EXPECT_THAT(loaded.Run({{"image", Images(count)}}).at("output_0").ToVector<float>(),
                Pointwise(FloatNear(1e-5f), wanted));
  }
  // The optimizer's variables are not there.
  EXPECT_FALSE(loaded.graph().FindNode("dense/kernel") == nullptr);
  for (const Node* node : loaded.graph().nodes()) EXPECT_THAT(node->name(), ::testing::Not(HasSubstr("adam")));
}

TEST(SavedModelExportTest, SeveralInputsAndOutputs) {
  const testing::TempFolder folder;
  const LayerTensor a = Input(Shape{2}, {.name = "a"}), b = Input(Shape{2}, {.name = "b"});
  const LayerTensor sum = Add()({a, b});
  Model model({a, b}, {sum, Dense(1, {.kernel_initializer = "ones"})(sum), a});
  model.ExportSavedModel(folder / "model");
  const auto values = SavedModel(folder / "model")
                          .Run({{"a", Tensor::FromValues<float>({1, 2}, Shape{1, 2})},
                                {"b", Tensor::FromValues<float>({10, 20}, Shape{1, 2})}});
  EXPECT_THAT(values, ElementsAre(Key("output_0"), Key("output_1"), Key("output_2")));
  EXPECT_THAT(values.at("output_0").ToVector<float>(), ElementsAre(11, 22));
  EXPECT_THAT(values.at("output_1").ToVector<float>(), ElementsAre(33));
  EXPECT_THAT(values.at("output_2").ToVector<float>(), ElementsAre(1, 2));
}

TEST(SavedModelExportTest, MixedPrecisionIsExportedAsFloats) {
  const testing::TempFolder folder;
  Sequential model(Layers(), {.dtype_policy = "mixed_bfloat16"});
  model.ExportSavedModel(folder / "model");
  const SavedModel loaded(folder / "model");
  for (const Node* node : loaded.graph().nodes()) {
    for (int i = 0; i < node->num_outputs(); ++i) EXPECT_NE(node->output(i).dtype(), DType::kBfloat16) << node->name();
  }
}

// Its op is one that TensorFlow lacks.
class Waiting final : public Layer {
 public:
  Waiting() : Layer("Waiting") {}
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const ControlDependencies after(ctx.graph(),
                                    {ops::FIFOQueue(ctx.graph(), {DType::kFloat32}).Reset("reset_the_queue")});
    return {ops::Identity(inputs[0])};
  }
};

TEST(SavedModelExportTest, WhatIsWrongIsNamed) {
  const testing::TempFolder folder;
  Sequential unknown({Dense(2)});
  EXPECT_THROW(unknown.ExportSavedModel(folder / "unknown"), FailedPreconditionError);
  Sequential waiting({Input(Shape{2}), MakeLayer<Waiting>()});
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { waiting.ExportSavedModel(folder / "waiting"); }),
              HasSubstr("QueueReset"));
  EXPECT_FALSE(FileExists(folder / "waiting"));
  Sequential model({Input(Shape{2}), Dense(2)});
  model.ExportSavedModel(folder / "model");
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { model.ExportSavedModel(folder / "model"); }),
              HasSubstr(folder / "model"));
}

}  // namespace
}  // namespace cohort::keras
