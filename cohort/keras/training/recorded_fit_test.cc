// Fit on a GPU of the fake driver, whose steps are recorded as CUDA graphs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/mutex.h"
#include "cohort/data/dataset.h"
#include "cohort/device/logical_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

// 22 examples are five batches of 4 and one of 2, which has a graph of its own.
constexpr int64_t kExamples = 22, kRows = 4, kBatches = 6, kEpochs = 3;

// Counts the batches that the input makes. Before a step begins, waits until the next full batch is ready.
class InputIsAhead : public Callback {
 public:
  data::Dataset Counted(const data::Dataset& dataset) {
    const auto count = [this](const std::vector<Tensor>& batch) {
      MutexLock lock(mu_);
      ++begun_;
      changed_.NotifyAll();
      return batch;
    };
    return dataset.Map(count, dataset.element_spec());
  }
  void OnTrainBatchBegin(int64_t batch) override {
    MutexLock lock(mu_);
    if (batch == 0) before_epoch_ = kBatches * epoch_++;
    if (batch + 2 >= kBatches) return;
    // If the batch behind the next one is begun, the next one is ready.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (begun_ < before_epoch_ + batch + 3) ASSERT_TRUE(changed_.WaitUntil(mu_, deadline));
  }

 private:
  Mutex mu_;
  CondVar changed_;
  int64_t begun_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t epoch_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t before_epoch_ COHORT_GUARDED_BY(mu_) = 0;
};

struct Fitted {
  double loss = 0;
  double test_loss = 0;
  std::vector<Tensor> weights;
  int64_t launches = 0;
  int64_t graphs = 0;
  int64_t late_copies = 0;  // of feeds, when their step had begun
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
  const Tensor x = Counting(Shape{kExamples, 8, 8, 1}, -1.0f, 0.002f);
  Tensor y(DType::kInt64, Shape{kExamples});
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<int64_t>()[i] = i * 3 % 5;
  model.Fit(x, y, {.batch_size = kRows, .epochs = 2, .verbose = 0});
  const auto ahead = std::make_shared<InputIsAhead>();
  const data::Dataset dataset =
      ahead->Counted(data::Dataset::FromTensorSlices({x, y}).Shuffle(kExamples, 7).Batch(kRows));
  Fitted fitted;
  fitted.launches = -counts.launches();
  fitted.graphs = -counts.graph_launches();
  fitted.late_copies = -counts.copies_between_kernels();
  fitted.loss = model.Fit(dataset, {.epochs = kEpochs, .verbose = 0, .callbacks = {ahead}})["loss"].back();
  fitted.launches += counts.launches();
  fitted.graphs += counts.graph_launches();
  fitted.late_copies += counts.copies_between_kernels();
  fitted.test_loss = FindLog(model.Evaluate(x, y, {.batch_size = kRows, .verbose = 0}), "loss").value();
  fitted.weights = model.GetWeights();
  backend.set_takes_unplaced_nodes(took);
  config::EnableStepRecording(true);
  return fitted;
}

TEST(RecordedFitTest, HasTheBitsOfLaunchedSteps) {
  RegisterAll();
  const Fitted launched = FitOnGpu(false), recorded = FitOnGpu(true);
  EXPECT_EQ(launched.graphs, 0);
  EXPECT_GE(recorded.graphs, kEpochs * kBatches);
  EXPECT_LT(recorded.launches, launched.launches / 4);
  // At most inputs, targets and weights of the first batch of an epoch, and of the small one if it was not ready.
  EXPECT_LE(recorded.late_copies, 3 * 2 * kEpochs);
  EXPECT_EQ(recorded.loss, launched.loss);
  EXPECT_EQ(recorded.test_loss, launched.test_loss);
  ASSERT_EQ(recorded.weights.size(), launched.weights.size());
  for (size_t i = 0; i < recorded.weights.size(); ++i) {
    const Tensor &a = recorded.weights[i], &b = launched.weights[i];
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0) << i;
  }
}

// Their gradients know all sizes but that of the batch, so that nothing has to come to the host.
TEST(RecordedFitTest, RecordsLayersThatPadCropAndEnlarge) {
  RegisterAll();
  config::EnableStepRecording(true);
  const cuda::DriverCounts& counts = cuda::RegisterGpusForTests().counts;
  cuda::CudaBackend& backend = cuda::CudaBackend::Get();
  const bool took = backend.takes_unplaced_nodes();
  backend.set_takes_unplaced_nodes(true);
  SessionConfig session;
  session.device_count[backend.type()] = 1;
  Sequential model(
      {Input(Shape{3, 4, 2}), ZeroPadding2D({{1, 2}, {0, 1}}), Conv2DTranspose(4, 3, {.strides = 2}),
       Cropping2D({{1, 2}, {0, 3}}), UpSampling2D({2, 1}), UpSampling2D({1, 2}, {.interpolation = "bilinear"}),
       Conv2D(2, 3, {.strides = 3}), Flatten(), RepeatVector(3), Conv1D(3, 2), GlobalMaxPooling1D()},
      {.seed = 5, .session = session});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = Counting(Shape{kExamples, 3, 4, 2}, -1.0f, 0.002f), y = Counting(Shape{kExamples, 3}, 0, 0.01f);
  model.Fit(x, y, {.batch_size = kRows, .epochs = 2, .verbose = 0});
  const int64_t graphs = counts.graph_launches();
  model.Fit(x, y, {.batch_size = kRows, .epochs = kEpochs, .verbose = 0});
  EXPECT_GE(counts.graph_launches() - graphs, kEpochs * kBatches);
  backend.set_takes_unplaced_nodes(took);
}

// Steps that update rows of tables, as those of recommenders do.
TEST(RecordedFitTest, RecordsEmbeddings) {
  RegisterAll();
  config::EnableStepRecording(true);
  const cuda::DriverCounts& counts = cuda::RegisterGpusForTests().counts;
  cuda::CudaBackend& backend = cuda::CudaBackend::Get();
  const bool took = backend.takes_unplaced_nodes();
  backend.set_takes_unplaced_nodes(true);
  const std::pair<std::string, OptimizerPtr> optimizers[] = {
      {"sgd", SGD({.learning_rate = 0.1})},
      {"sgd with clipnorm", SGD({.learning_rate = 0.1, .clipnorm = 0.5})},
      {"sgd with global_clipnorm", SGD({.learning_rate = 0.1, .global_clipnorm = 0.5})},
      {"sgd with clipvalue", SGD({.learning_rate = 0.1, .clipvalue = 0.01})},
      {"adagrad", Adagrad({.learning_rate = 0.1})},
      {"lazy adam", Adam({.lazy = true})}};
  for (const auto& [name, optimizer] : optimizers) {
    std::vector<Tensor> weights[2];
    for (const bool on_gpu : {false, true}) {
      SessionConfig session;
      session.device_count[backend.type()] = on_gpu ? 1 : 0;
      const LayerTensor ids = Input(Shape{3}, {.dtype = DType::kInt32});
      const LayerTensor both = Concatenate()({Embedding(7, 4)(ids), Embedding(7, 2)(ids)});
      Model model({ids}, {Dense(1)(Flatten()(both))}, {.seed = 5, .session = session});
      model.Compile({.optimizer = optimizer, .loss = "mse"});
      Tensor x(DType::kInt32, Shape{kExamples, 3});
      for (int64_t i = 0; i < x.num_elements(); ++i) x.data<int32_t>()[i] = static_cast<int32_t>(i * i % 7);
      const Tensor y = Counting(Shape{kExamples, 1}, -1, 0.1f);
      model.Fit(x, y, {.batch_size = kRows, .epochs = 2, .verbose = 0, .shuffle = false});
      const int64_t graphs = counts.graph_launches();
      model.Fit(x, y, {.batch_size = kRows, .epochs = kEpochs, .verbose = 0, .shuffle = false});
      EXPECT_GE(counts.graph_launches() - graphs, on_gpu ? kEpochs * kBatches : 0) << name;
      weights[on_gpu] = model.GetWeights();
    }
    for (size_t i = 0; i < weights[0].size(); ++i) {
      const std::vector<float> cpu = weights[0][i].ToVector<float>(), gpu = weights[1][i].ToVector<float>();
      ASSERT_EQ(cpu.size(), gpu.size());
      for (size_t j = 0; j < cpu.size(); ++j) EXPECT_NEAR(cpu[j], gpu[j], 1e-4) << name << " " << i << " " << j;
    }
  }
  backend.set_takes_unplaced_nodes(took);
}

// Ends the training after its fourth batch, when the fifth one is ready.
class EndsEarly : public InputIsAhead {
 public:
  void OnTrainBatchEnd(int64_t batch, const BatchLogs& /*logs*/) override {
    if (batch + 3 >= kBatches) host().StopTraining();
  }
};

// A dataset that passes on the program's tensors without a copy. The program changes them between two calls of Fit.
std::vector<double> LossesOfChangedData(bool recorded) {
  config::EnableStepRecording(recorded);
  const cuda::DriverCounts& counts = cuda::RegisterGpusForTests().counts;
  cuda::CudaBackend& backend = cuda::CudaBackend::Get();
  const bool took = backend.takes_unplaced_nodes();
  backend.set_takes_unplaced_nodes(true);
  SessionConfig session;
  session.device_count[backend.type()] = 1;
  Sequential model({Input(Shape{8}), Dense(3)}, {.seed = 5, .session = session});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  Tensor x = Counting(Shape{kRows, 8}, -1.0f, 0.02f), y = Counting(Shape{kRows, 3}, 0.5f, 0.1f);
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    const auto early = std::make_shared<EndsEarly>();
    const data::Dataset dataset = early->Counted(data::Dataset::FromTensors({x, y}).Repeat());
    const int64_t copied = counts.bytes_from_host();
    losses.push_back(model.Fit(dataset, {.verbose = 0, .callbacks = {early}, .steps_per_epoch = 20})["loss"].back());
    // The batch behind the last one was copied, too.
    if (recorded && i == 2) {
      EXPECT_GE(counts.bytes_from_host() - copied, static_cast<int64_t>(5 * (x.bytes() + y.bytes())));
    }
    for (int64_t j = 0; j < x.num_elements(); ++j) x.data<float>()[j] *= -0.5f;
  }
  backend.set_takes_unplaced_nodes(took);
  config::EnableStepRecording(true);
  return losses;
}

TEST(RecordedFitTest, SeesDataThatChangeAfterAnEarlyEnd) {
  RegisterAll();
  EXPECT_EQ(LossesOfChangedData(true), LossesOfChangedData(false));
}

}  // namespace
}  // namespace cohort::keras
