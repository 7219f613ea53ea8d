// Shows a program's own layer and its own training step. The model tells two spirals apart.
#include <cmath>
#include <cstdio>

#include "cohort/cohort.h"

using namespace cohort;

// Computes sin(x frequencies + phases) with learned frequencies: [batch, in] -> [batch, 64].
struct Sines final : keras::Layer {
  Sines() : Layer("Sines") {}
  Output Call(keras::CallContext& ctx, Output x) const override {
    const auto normal = keras::initializers::RandomNormal(0.0, 1.0);
    const Output frequencies = ctx.weight({"frequencies", Shape{x.shape().dim(1), 64}, DType::kFloat32, normal});
    return ops::Sin(ops::MatMul(x, frequencies) + ctx.weight({.name = "phases", .shape = Shape{64}}));
  }
};

// Moves the points a little, and clips the global norm of the gradients to 1.
void RobustStep(keras::StepContext& step) {
  const Output x = step.x()[0];
  const Output y_pred = step.Call(x + 0.05f * ops::RandomStandardNormal(ops::ShapeOf(x)));
  step.ApplyGradients(train::ClipByGlobalNorm(step.Gradients(step.Loss(y_pred)), 1.0f));
  step.UpdateMetrics(y_pred);
}

int main() {
  Tensor x(DType::kFloat32, Shape{3000, 2}), y(DType::kInt32, Shape{3000});
  for (int i = 0; i < 3000; ++i) {
    const float turns = 0.25f + 0.75f * static_cast<float>(i * 7919 % 3001) / 3000, angle = 9.42f * turns;
    y.data<int32_t>()[i] = i % 2;
    x.data<float>()[2 * i] = (i % 2 ? -3 : 3) * turns * std::cos(angle);
    x.data<float>()[2 * i + 1] = (i % 2 ? -3 : 3) * turns * std::sin(angle);
  }
  keras::Sequential model({keras::MakeLayer<Sines>(), keras::Dense(2, {.activation = "softmax"})}, {.seed = 1});
  model.Compile({.loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}, .train_step = RobustStep});
  const keras::History history = model.Fit(x, y, {.epochs = 30, .verbose = 2, .validation_split = 0.3});
  if (history.interrupted()) return 0;
  std::printf("test accuracy: %.4f\n", history["val_accuracy"].back());
}
