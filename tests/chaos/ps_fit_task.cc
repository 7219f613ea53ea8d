// A task of a training with parameter servers. parameter_server_fit_chaos_test kills, freezes and restarts it.
// TF_CONFIG says which task it is. Workers and parameter servers serve. The chief trains:
//   ps_fit_task BACKUP_DIR STEPS_PER_EPOCH END_FILE
// It trains until the end of an epoch finds END_FILE, so that a test can be sure that the training is not at its end.
// It prints "epoch N" when an epoch begins, "seen N" with the number of examples that an epoch's metric has counted
// when it ends, and at the end "end N" with the number of updates, or "interrupted after N steps" after SIGTERM.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/array.h"
#include "cohort/registration.h"

namespace cohort {
namespace {

constexpr int64_t kBatch = 4;

// Counts examples.
class Seen final : public keras::Metric {
 public:
  Seen() : Metric("seen") {}
  std::vector<keras::MetricState> States() const override { return {{"count", Shape()}}; }
  std::vector<Output> Increments(const Output& y_true, const Output&, const Output&) const override {
    return {ops::Cast(ops::Size(y_true, DType::kInt64), DType::kFloat64)};
  }
  Output Result(const std::vector<Output>& states) const override { return states.at(0); }
};

// Prints the epochs, and stops the training when the file is there.
class Epochs final : public keras::Callback {
 public:
  explicit Epochs(std::string end_file) : end_file_(std::move(end_file)) {}
  void OnEpochBegin(int epoch) override { std::cout << "epoch " << epoch << std::endl; }
  void OnEpochEnd(int /*epoch*/, keras::Logs& logs) override {
    std::cout << "seen " << keras::FindLog(logs, "seen").value() << std::endl;
    if (std::filesystem::exists(end_file_)) host().StopTraining();
  }

 private:
  const std::string end_file_;
};

ServerOptions OfServer() {
  ServerOptions server;
  server.heartbeat_interval = std::chrono::milliseconds(300);
  server.silence_limit = std::chrono::milliseconds(1500);
  server.orphan_timeout = std::chrono::minutes(10);
  server.config.intra_op_parallelism_threads = 1;
  return server;
}

void Fit(const TFConfigClusterResolver& resolver, const std::string& backup_dir, int64_t steps_per_epoch,
         const std::string& end_file) {
  const auto strategy = distribute::ParameterServerStrategy(
      resolver, nullptr, {.server = OfServer(), .ps_timeout = std::chrono::seconds(5)});
  Tensor x(DType::kFloat32, Shape{32, 6}), y(DType::kFloat32, Shape{32, 1});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = static_cast<float>((i * 7919) % 101 - 50) / 50.0f;
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<float>()[i] = x.data<float>()[6 * i] * 0.5f;
  keras::Sequential model(
      {keras::Input(Shape{6}), keras::Dense(16, {.activation = "tanh"}), keras::Dropout(0.1), keras::Dense(1)},
      {.seed = 3, .strategy = strategy});
  model.Compile({.optimizer = keras::Adam({.learning_rate = 0.01}),
                 .loss = "mse",
                 .metrics = {keras::MetricArgument(std::make_shared<Seen>())}});
  const keras::History history =
      model.Fit(data::Dataset::FromTensorSlices({x, y}).Shuffle(32).Repeat().Batch(kBatch),
                {.epochs = std::numeric_limits<int>::max(),
                 .verbose = 0,
                 .callbacks = {keras::BackupAndRestore({.backup_dir = backup_dir}), std::make_shared<Epochs>(end_file)},
                 .steps_per_epoch = steps_per_epoch});
  if (history.interrupted()) {
    std::cout << "interrupted after " << model.Iterations() << " steps" << std::endl;
    return;  // the other tasks wait for the next chief
  }
  std::cout << "end " << model.Iterations() << std::endl;
  strategy->server()->AnnounceDone();
}

void Run(const std::string& backup_dir, int64_t steps_per_epoch, const std::string& end_file) {
  const TFConfigClusterResolver resolver;
  std::cout << "begins" << std::endl;
  if (resolver.task_type() == "chief") return Fit(resolver, backup_dir, steps_per_epoch, end_file);
  Server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(0), OfServer()).Join();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    cohort::RegisterAll();
    cohort::Run(argv[1], std::atoll(argv[2]), argv[3]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "ps_fit_task: " << error.what() << std::endl;
    return 1;
  }
}
