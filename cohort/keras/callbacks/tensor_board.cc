#include <chrono>
#include <memory>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/summary/event_writer.h"

namespace cohort::keras {
namespace {

using Clock = std::chrono::steady_clock;

class TensorBoardCallback final : public Callback {
 public:
  explicit TensorBoardCallback(const TensorBoardOptions& options) : options_(options) {}

  void OnTrainBegin() override {
    in_fit_ = true;
    if (options_.write_graph && host().is_chief()) Train().Graph(host().SerializedGraph());
  }

  void OnEpochBegin(int) override {
    epoch_begin_ = Clock::now();
    first_iteration_ = host().Iterations();
  }

  void OnTrainBatchBegin(int64_t) override { batch_begin_ = Clock::now(); }

  void OnTrainBatchEnd(int64_t, const BatchLogs& logs) override {
    ++batches_;
    if (!host().is_chief()) return;
    if (options_.update_every_batches == 0 || batches_ % options_.update_every_batches != 0) return;
    const int64_t step = host().Iterations();
    if (options_.write_steps_per_second) Train().Scalar("batch_steps_per_second", Rate(1, batch_begin_), step);
    for (const auto& [name, value] : logs.Running()) {
      Train().Scalar("batch_" + name, static_cast<float>(value), step);
    }
  }

  std::optional<std::string> needs_batches() const override {
    return options_.update_every_batches > 0 ? std::optional<std::string>("TensorBoard") : std::nullopt;
  }

  void OnEpochEnd(int epoch, Logs& logs) override {
    if (!host().is_chief()) return;
    for (const auto& [name, value] : logs) {
      const bool validation = name.rfind("val_", 0) == 0;
      EventWriter& writer = validation ? Validation() : Train();
      writer.Scalar("epoch_" + (validation ? name.substr(4) : name), static_cast<float>(value), epoch);
    }
    if (!FindLog(logs, "learning_rate")) {
      Train().Scalar("epoch_learning_rate", static_cast<float>(host().GetLearningRate()), epoch);
    }
    if (options_.write_steps_per_second) {
      Train().Scalar("epoch_steps_per_second", Rate(host().Iterations() - first_iteration_, epoch_begin_), epoch);
    }
    if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) WriteHistograms(epoch);
    Flush();
  }

  void OnTestEnd(const Logs& logs) override {
    if (!host().is_chief()) return;
    const int64_t step = host().Iterations();
    for (const auto& [name, value] : logs) {
      Validation().Scalar(StrCat("evaluation_", name, "_vs_iterations"), static_cast<float>(value), step);
    }
    if (!in_fit_) Close();
  }

  void OnTrainEnd(const Logs&) override {
    in_fit_ = false;
    Close();
  }

 private:
  EventWriter& Train() { return Writer(train_, "/train"); }
  EventWriter& Validation() { return Writer(validation_, "/validation"); }
  // Made with the first value, so that a run without validation leaves no empty file.
  EventWriter& Writer(std::unique_ptr<EventWriter>& writer, const char* run) {
    if (writer == nullptr) writer = std::make_unique<EventWriter>(options_.log_dir + run);
    return *writer;
  }
  void Flush() {
    if (train_ != nullptr) train_->Flush();
    if (validation_ != nullptr) validation_->Flush();
  }
  void Close() {
    if (train_ != nullptr) train_->Close();
    if (validation_ != nullptr) validation_->Close();
    train_.reset();
    validation_.reset();
  }

  // Steps a second.
  static float Rate(int64_t steps, Clock::time_point begin) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return static_cast<float>(seconds > 0 ? static_cast<double>(steps) / seconds : 0.0);
  }

  void WriteHistograms(int epoch) {
    const std::vector<std::string> names = host().WeightNames();
    const std::vector<Tensor> weights = host().GetWeights();
    for (size_t i = 0; i < names.size() && i < weights.size(); ++i) Train().Histogram(names[i], weights[i], epoch);
  }

  const TensorBoardOptions options_;
  std::unique_ptr<EventWriter> train_;
  std::unique_ptr<EventWriter> validation_;
  bool in_fit_ = false;
  int64_t batches_ = 0;
  int64_t first_iteration_ = 0;
  Clock::time_point epoch_begin_ = Clock::now();
  Clock::time_point batch_begin_ = Clock::now();
};

}  // namespace

CallbackPtr TensorBoard(const TensorBoardOptions& options) {
  if (options.histogram_freq < 0 || options.update_every_batches < 0) {
    throw InvalidArgumentError(
        StrCat("[keras/callbacks] TensorBoard expected histogram_freq and update_every_batches "
               "of at least 0; got ",
               options.histogram_freq, " and ", options.update_every_batches));
  }
  return std::make_shared<TensorBoardCallback>(options);
}

}  // namespace cohort::keras
