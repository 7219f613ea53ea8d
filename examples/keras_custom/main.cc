// Shows how a program writes its own layer and its own training step. The model tells two spirals apart. Its layer
// computes sines with learned frequencies. Its training step moves the points a little in every step.
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>

#include "cohort/cohort.h"

namespace {

using namespace cohort;

// Computes sin(x frequencies + phases): [batch, in] -> [batch, units].
class Sines final : public keras::Layer {
 public:
  explicit Sines(int64_t units) : Layer("Sines"), units_(units) {}

  std::vector<keras::WeightSpec> Build(const std::vector<keras::LayerInput>& inputs) const override {
    const Shape& x = inputs.at(0).shape;
    return {{.name = "frequencies",
             .shape = Shape{x.dim(x.rank() - 1), units_},
             .initializer = keras::initializers::RandomNormal(0.0, 1.0)},
            {.name = "phases", .shape = Shape{units_}, .initializer = keras::initializers::RandomUniform(-3.0, 3.0)}};
  }

  std::vector<Output> Call(keras::CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {ops::Sin(ops::MatMul(inputs[0], ctx.weight("frequencies")) + ctx.weight("phases"))};
  }

 private:
  const int64_t units_;
};

// Adds normal noise to the points, and clips the global norm of the gradients to 1.
void RobustStep(keras::StepContext& step) {
  const Output x = step.x()[0];
  const std::vector<Output> y_pred = step.Call({x + 0.05f * ops::RandomStandardNormal(ops::ShapeOf(x))});
  const Output loss = step.Loss(y_pred);
  step.ApplyGradients(train::ClipByGlobalNorm(step.Gradients(loss), 1.0f));
  step.ReportLoss(loss);
  step.UpdateMetrics(y_pred);
}

keras::ModelData Spirals(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> along(0.25f, 1.0f);
  Tensor x(DType::kFloat32, Shape{count, 2}), y(DType::kInt32, Shape{count});
  for (int64_t i = 0; i < count; ++i) {
    const int32_t label = static_cast<int32_t>(i % 2);
    const float t = along(random);
    const float angle = std::numbers::pi_v<float> * (3.0f * t + static_cast<float>(label));
    x.data<float>()[2 * i] = 3 * t * std::cos(angle);
    x.data<float>()[2 * i + 1] = 3 * t * std::sin(angle);
    y.data<int32_t>()[i] = label;
  }
  return {x, y};
}

}  // namespace

int main() {
  keras::Sequential model({keras::Input(Shape{2}), keras::MakeLayer<Sines>(64),
                           keras::Dense(32, {.activation = "relu"}), keras::Dense(2, {.activation = "softmax"})},
                          {.seed = 1});
  model.Compile({.optimizer = keras::Adam({.learning_rate = 0.01}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"},
                 .train_step = RobustStep});
  model.Summary();
  model.Fit(Spirals(2000, 1), {.epochs = 5, .verbose = 2});
  const keras::Logs logs = model.Evaluate(Spirals(1000, 2), {.verbose = 0});
  std::printf("test accuracy: %.4f\n", keras::FindLog(logs, "accuracy").value());
}
