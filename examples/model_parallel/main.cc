// A Keras model whose layers stand on two workers. A model that is too large for one machine is divided like this: each
// worker keeps the weights of its layers and computes them, and only activations and their gradients travel.
//
//   cohort launch --chief --workers=2 -- model_parallel
//
// The chief describes the model, reads the data and runs the steps. The workers serve. The model tells two spirals
// apart. Lines such as "third_1/dense/MatMul: (MatMul): /job:worker/replica:0/task:1/..." show where ops and variables
// stand.
#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cohort/cohort.h"

using namespace cohort;

namespace {

// Puts another layer, with its weights, on a device of the cluster.
class OnDevice final : public keras::Layer {
 public:
  OnDevice(const std::string& name, std::string device, keras::LayerRef layer)
      : Layer("OnDevice", name), device_(std::move(device)), layer_(std::move(layer)) {}
  Output Call(keras::CallContext& ctx, Output x) const override {
    const DeviceScope device(ctx.graph(), device_);
    return ctx.Call(*layer_, x);
  }

 private:
  const std::string device_;
  const keras::LayerRef layer_;
};

keras::LayerRef On(int worker, const std::string& name, keras::LayerRef layer) {
  return keras::MakeLayer<OnDevice>(name, "/job:worker/task:" + std::to_string(worker), std::move(layer));
}

void MakeSpirals(Tensor* x, Tensor* y) {
  *x = Tensor(DType::kFloat32, Shape{1200, 2});
  *y = Tensor(DType::kInt32, Shape{1200});
  for (int i = 0; i < 1200; ++i) {
    const float turns = 0.25f + 0.5f * static_cast<float>(i * 7919 % 1201) / 1200, angle = 9.42f * turns;
    y->data<int32_t>()[i] = i % 2;
    x->data<float>()[2 * i] = (i % 2 ? -3 : 3) * turns * std::cos(angle);
    x->data<float>()[2 * i + 1] = (i % 2 ? -3 : 3) * turns * std::sin(angle);
  }
}

void Train(const TFConfigClusterResolver& resolver) {
  const distribute::StrategyPtr cluster = distribute::Default(resolver);
  keras::Sequential model({keras::Input(Shape{2}), On(0, "first", keras::Dense(64, {.activation = "tanh"})),
                           On(0, "second", keras::Dense(64, {.activation = "tanh"})),
                           On(1, "third", keras::Dense(64, {.activation = "tanh"})),
                           On(1, "fourth", keras::Dense(2, {.activation = "softmax"}))},
                          {.seed = 1, .session = {.log_device_placement = true}, .strategy = cluster});
  model.Compile({.optimizer = keras::Adam({.learning_rate = 0.005}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  Tensor x, y;
  MakeSpirals(&x, &y);
  const keras::History history = model.Fit({x, y}, {.epochs = 25, .verbose = 2});
  if (!history.interrupted()) {
    std::cout << "loss from " << history["loss"].front() << " to " << history["loss"].back() << ", accuracy "
              << history["accuracy"].back() << std::endl;
  }
  cluster->server()->AnnounceDone();
}

void Run() {
  const TFConfigClusterResolver resolver;
  if (!resolver.task_type()) {
    throw InvalidArgumentError(
        "[model_parallel] expected a cluster in TF_CONFIG; start the program with: cohort launch "
        "--chief --workers=2 -- model_parallel");
  }
  if (resolver.task_type() == "chief") return Train(resolver);
  Server(resolver.cluster_spec(), *resolver.task_type(), resolver.task_id().value_or(0)).Join();
}

}  // namespace

int main() {
  try {
    RegisterAll();
    DumpStateOnSignal();  // SIGUSR1 prints what this process does
    Run();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "model_parallel: " << error.what() << "\n";
    return 1;
  }
}
