// Fit on a GPU of the fake driver, whose steps are recorded as CUDA graphs.
#include <gtest/gtest.h>

#include <cstring>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/device/logical_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

struct Fitted {
  double loss = 0;
  std::vector<Tensor> weights;
  int64_t launches = 0;
  int64_t graphs = 0;
};

Fitted FitOnGpu(bool recorded) {
  config::EnableStepRecording(recorded);
  const cuda::DriverCounts& counts = cuda::RegisterGpusForTests().counts;
  cuda::CudaBackend& backend = cuda::CudaBackend::Get();
  const bool took = backend.takes_unplaced_nodes();
  backend.set_takes_unplaced_nodes(true);  // as without tests
  SessionConfig session;
  session.device_count[backend.type()] = 1;
  Sequential model({Input(Shape{8, 8, 1}), Conv2D(4, 3, {.activation = "selu"}), MaxPooling2D(2), BatchNormalization(),
                    Flatten(), Dropout(0.25), Dense(5, {.activation = "softmax"})},
                   {.seed = 5, .session = session});
  model.Compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  const Tensor x = Counting(Shape{22, 8, 8, 1}, -1.0f, 0.002f);
  Tensor y(DType::kInt64, Shape{22});
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<int64_t>()[i] = i * 3 % 5;
  model.Fit(x, y, {.batch_size = 4, .epochs = 1, .verbose = 0});
  Fitted fitted;
  fitted.launches = -counts.launches();
  fitted.graphs = -counts.graph_launches();
  fitted.loss = model.Fit(x, y, {.batch_size = 4, .epochs = 3, .verbose = 0})["loss"].back();
  fitted.launches += counts.launches();
  fitted.graphs += counts.graph_launches();
  fitted.weights = model.GetWeights();
  backend.set_takes_unplaced_nodes(took);
  config::EnableStepRecording(true);
  return fitted;
}

// 22 examples are five batches of 4 and one of 2, which has a graph of its own.
TEST(RecordedFitTest, HasTheBitsOfLaunchedSteps) {
  RegisterAll();
  const Fitted launched = FitOnGpu(false), recorded = FitOnGpu(true);
  EXPECT_EQ(launched.graphs, 0);
  EXPECT_GE(recorded.graphs, 3 * 6);
  EXPECT_LT(recorded.launches, launched.launches / 4);
  EXPECT_EQ(recorded.loss, launched.loss);
  ASSERT_EQ(recorded.weights.size(), launched.weights.size());
  for (size_t i = 0; i < recorded.weights.size(); ++i) {
    const Tensor &a = recorded.weights[i], &b = launched.weights[i];
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0) << i;
  }
}

}  // namespace
}  // namespace cohort::keras
