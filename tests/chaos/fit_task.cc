// A training with backups. backup_chaos_test kills it and starts it again. With TF_CONFIG it is one of several workers.
//   fit_task DATA BACKUP_DIR SAVE_EVERY [HALT_AT [SIGNAL_AT]]
// DATA is "tensors" (shuffled again in each epoch), "dataset" (endless, cut into epochs), "files" (shuffled in a buffer
// after a map), or a folder of CSV files that the workers share. The program prints "batch N" after each batch, counted
// in this process, and "end WEIGHTS LOGS" at the end. After HALT_AT batches it prints "halted", and waits until it is
// killed. At batch SIGNAL_AT, counted over training and validation, it sends SIGTERM to itself. An interrupted training
// prints "interrupted" instead of its end. FIT_REPLICAS in the environment makes it a mirrored training of one process,
// and FIT_VALIDATES lets it validate after each epoch. FIT_OWN_GPU lets a worker see one GPU only, that of its own
// number. FIT_EPOCHS is the number of epochs (4). With FIT_PAUSE_MS it pauses so long after each batch, and prints
// "acked N", where N is the number of the step since the training began, instead of "batch N". FIT_HANG_FILE names a
// file that lets it hang (hang.h).
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/tf_config.h"
#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/readers.h"
#include "cohort/device/logical_devices.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/join.h"
#include "cohort/registration.h"
#include "tests/chaos/hang.h"

namespace cohort {
namespace {

constexpr int64_t kExamples = 50, kBatch = 8;

Tensor Waves(const Shape& shape, float scale) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<float>()[i] = scale * static_cast<float>((i * 7919) % 101 - 50) / 50.0f;
  }
  return tensor;
}

// Each line has six numbers and a target.
data::Dataset Rows(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  const auto split = [](Graph&, const std::vector<Output>& row) {
    return std::vector<Output>{ops::Pack({row.begin(), row.begin() + 6}), ops::Pack({row[6]})};
  };
  return data::CsvDataset(files, std::vector<data::CsvColumn>(7)).Map(split).Shuffle(7, 3).Batch(kBatch);
}

keras::ModelData Data(const std::string& kind) {
  const Tensor x = Waves(Shape{kExamples, 6}, 1.0f), y = Waves(Shape{kExamples, 1}, 0.7f);
  if (kind == "tensors") return {x, y};
  if (kind.find('/') != std::string::npos) return Rows(kind);
  data::Dataset dataset = data::Dataset::FromTensorSlices({x, y});
  if (kind == "dataset") return dataset.Shuffle(kExamples, 5).Repeat().Batch(kBatch);
  const auto halve = [](Graph&, const std::vector<Output>& args) {
    return std::vector<Output>{args[0] * 0.5f, args[1]};
  };
  return dataset.Map(halve).Filter([](const std::vector<Tensor>&) { return true; }).Shuffle(10, 3).Batch(kBatch);
}

// Returns null if this process trains alone.
distribute::StrategyPtr StrategyHere() {
  if (const char* replicas = std::getenv("FIT_REPLICAS")) {
    config::SetLogicalDevices(config::ListPhysicalDevices("CPU").at(0), std::atoi(replicas));
    return distribute::Mirrored();
  }
  if (std::getenv("TF_CONFIG") == nullptr) return nullptr;
  if (std::getenv("FIT_OWN_GPU") != nullptr) {
    const auto number = static_cast<size_t>(TFConfigClusterResolver().task_id().value_or(0));
    config::SetVisibleDevices({config::ListPhysicalDevices("GPU").at(number)}, "GPU");
  }
  ServerOptions server;
  server.config.intra_op_parallelism_threads = 1;
  return distribute::MultiWorkerMirrored({.replicas_per_worker = 1, .server = server});
}

// Counts the batches of training and validation, and sends SIGTERM to this process at one of them. Waits until Fit
// knows of it: the functions of StopSignals are called in order, and that of Fit is before the one of this callback.
class SignalsItself final : public keras::Callback {
 public:
  explicit SignalsItself(int64_t at) : at_(at) {}
  void OnTrainBegin() override {
    signal_.emplace([this] { handled_.set_value(); });
  }
  void OnTrainEnd(const keras::Logs&) override { signal_.reset(); }
  void OnTrainBatchBegin(int64_t) override { Count(); }
  void OnTestBatchBegin(int64_t) override { Count(); }
  void OnEpochEnd(int epoch, keras::Logs&) override { std::cout << "epoch " << epoch << std::endl; }
  void OnTestEnd(const keras::Logs&) override { std::cout << "validated" << std::endl; }

 private:
  void Count() {
    if (++count_ != at_) return;
    kill(getpid(), SIGTERM);
    handled_.get_future().wait();
  }

  const int64_t at_;
  int64_t count_ = 0;
  std::promise<void> handled_;
  std::optional<StopSignal> signal_;
};

keras::CallbackPtr Paced(keras::Model& model, int pause_ms) {
  const char* hang_file = std::getenv("FIT_HANG_FILE");
  std::string task;
  if (const TFConfigClusterResolver resolver; resolver.task_type()) {
    task = StrCat(*resolver.task_type(), "/", resolver.task_id().value_or(0));
  }
  const auto after_batch = [&model, task, pause_ms, file = std::string(hang_file == nullptr ? "" : hang_file)](
                               int64_t, const keras::BatchLogs&) {
    std::cout << "acked " << model.Iterations() << std::endl;
    testing::HangIfAsked(file, task);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));  // the pace of the steps; it waits for nothing
  };
  return keras::LambdaCallback({.on_train_batch_end = after_batch});
}

void Fit(const std::string& kind, const std::string& backup_dir, int64_t save_every, int64_t halt_at,
         int64_t signal_at) {
  keras::Sequential model({keras::Input(Shape{6}), keras::Dense(12, {.activation = "tanh"}),
                           keras::BatchNormalization(), keras::Dropout(0.3), keras::Dense(1)},
                          {.seed = 3, .strategy = StrategyHere()});
  model.Compile({.optimizer = keras::Adam({.learning_rate = keras::ExponentialDecay({0.01, 10, 0.9})}),
                 .loss = "mse",
                 .metrics = {"mae"}});
  int64_t batches = 0;
  const char* epochs = std::getenv("FIT_EPOCHS");
  keras::FitOptions options = {.batch_size = kBatch, .epochs = epochs == nullptr ? 4 : std::atoi(epochs), .verbose = 0};
  if (kind == "dataset") options.steps_per_epoch = 5;  // epochs do not end where passes end
  if (!backup_dir.empty()) {
    options.callbacks.push_back(keras::BackupAndRestore({.backup_dir = backup_dir, .save_every_batches = save_every}));
  }
  if (const char* pause = std::getenv("FIT_PAUSE_MS")) options.callbacks.push_back(Paced(model, std::atoi(pause)));
  options.callbacks.push_back(keras::LambdaCallback({.on_train_batch_end = [&](int64_t, const keras::BatchLogs&) {
    if (std::getenv("FIT_PAUSE_MS") != nullptr) return;
    std::cout << "batch " << ++batches << std::endl;
    if (batches != halt_at) return;
    std::cout << "halted" << std::endl;
    alarm(120);  // ends this process if the test has died
    while (true) pause();
  }}));
  if (signal_at >= 0) options.callbacks.push_back(std::make_shared<SignalsItself>(signal_at));
  if (std::getenv("FIT_VALIDATES") != nullptr) options.validation_data = Data("tensors");
  const keras::History history = model.Fit(Data(kind), options);
  if (history.interrupted()) {
    std::cout << "interrupted after " << model.Iterations() << " steps" << std::endl;
    return;
  }
  uint32_t crc = 0;
  for (const Tensor& weight : model.GetWeights()) {
    crc = crc32c::Extend(crc, {static_cast<const char*>(weight.raw_data()), weight.bytes()});
  }
  std::cout << "end " << crc << " of " << model.Iterations() << " steps, loss " << history["loss"].back() << ", mae "
            << history["mae"].back() << std::endl;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    cohort::RegisterAll();
    cohort::Fit(argv[1], argv[2], std::atoll(argv[3]), argc > 4 ? std::atoll(argv[4]) : -1,
                argc > 5 ? std::atoll(argv[5]) : -1);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
  return 0;
}
