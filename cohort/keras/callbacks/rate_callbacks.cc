// Callbacks that stop the training or change its learning rate: EarlyStopping, ReduceLROnPlateau, LearningRateScheduler
// and TerminateOnNaN. Each keeps what it remembers in SaveState, so that a restored training continues with it.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/callbacks/monitor.h"
#include "cohort/keras/callbacks/state_values.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {
namespace {

void Say(const std::string& line) { std::cout << line << std::endl; }

class EarlyStoppingCallback final : public Callback {
 public:
  explicit EarlyStoppingCallback(const EarlyStoppingOptions& options)
      : options_(options), monitor_("EarlyStopping", options.monitor, options.mode, options.min_delta) {}

  void OnTrainBegin() override {
    monitor_.Resolve(host());
    wait_ = 0;
    stopped_epoch_ = 0;
    best_epoch_ = 0;
    best_.reset();
    best_weights_.clear();
  }

  void OnEpochEnd(int epoch, Logs& logs) override {
    const std::optional<double> current = monitor_.Find(logs);
    if (!current || epoch < options_.start_from_epoch) return;
    if (options_.restore_best_weights && best_weights_.empty()) Keep(epoch);
    ++wait_;
    if (monitor_.Improves(*current, best_)) {
      best_ = current;
      Keep(epoch);
      if (!options_.baseline || monitor_.Improves(*current, options_.baseline)) wait_ = 0;
      return;
    }
    if (wait_ >= options_.patience && epoch > 0) {
      stopped_epoch_ = epoch;
      host().StopTraining();
    }
  }

  void OnTrainEnd(const Logs&) override {
    if (stopped_epoch_ > 0 && options_.verbose > 0) Say(StrCat("Epoch ", stopped_epoch_ + 1, ": early stopping"));
    if (best_weights_.empty()) return;
    if (options_.verbose > 0) {
      Say(StrCat("Restoring model weights from the end of the best epoch: ", best_epoch_ + 1, "."));
    }
    host().SetWeights(best_weights_);
  }

  // The state has the counters and the best value, and then the best weights.
  std::optional<State> SaveState() const override {
    State state = {"EarlyStopping", {StateOf({wait_ * 1.0, stopped_epoch_ * 1.0, best_epoch_ * 1.0, OrNan(best_)})}};
    state.values.insert(state.values.end(), best_weights_.begin(), best_weights_.end());
    return state;
  }
  bool RestoreState(const std::vector<Tensor>& values) override {
    const auto numbers = NumbersOf(values, 4);
    if (!numbers) return false;
    wait_ = static_cast<int>((*numbers)[0]);
    stopped_epoch_ = static_cast<int>((*numbers)[1]);
    best_epoch_ = static_cast<int>((*numbers)[2]);
    best_ = OptionalOf((*numbers)[3]);
    best_weights_.assign(values.begin() + 1, values.end());
    return true;
  }

  std::optional<Influence> influence() const override {
    const ConfigValue options = ConfigValue::Object{{"monitor", options_.monitor},
                                                    {"min_delta", options_.min_delta},
                                                    {"patience", options_.patience},
                                                    {"mode", static_cast<int>(options_.mode)},
                                                    {"baseline", options_.baseline},
                                                    {"restore_best_weights", options_.restore_best_weights},
                                                    {"start_from_epoch", options_.start_from_epoch}};
    return Influence{"EarlyStopping", options.ToJson()};
  }

 private:
  void Keep(int epoch) {
    best_epoch_ = epoch;
    if (!options_.restore_best_weights) return;
    best_weights_.clear();
    // Makes copies, because the model's own tensors may change.
    for (const Tensor& weight : host().GetWeights()) best_weights_.push_back(weight.Clone());
  }

  const EarlyStoppingOptions options_;
  Monitor monitor_;
  int wait_ = 0;
  int stopped_epoch_ = 0;
  int best_epoch_ = 0;
  std::optional<double> best_;
  std::vector<Tensor> best_weights_;
};

class PlateauCallback final : public Callback {
 public:
  explicit PlateauCallback(const ReduceLROnPlateauOptions& options)
      : options_(options), monitor_("ReduceLROnPlateau", options.monitor, options.mode, options.min_delta) {}

  void OnTrainBegin() override {
    monitor_.Resolve(host());
    wait_ = 0;
    cooling_ = 0;
    best_.reset();
  }

  void OnEpochEnd(int epoch, Logs& logs) override {
    const double rate = host().GetLearningRate();
    SetLog(logs, "learning_rate", rate);
    const std::optional<double> current = monitor_.Find(logs);
    if (!current) return;
    if (cooling_ > 0) {
      --cooling_;
      wait_ = 0;
    }
    if (monitor_.Improves(*current, best_)) {
      best_ = current;
      wait_ = 0;
    } else if (cooling_ == 0) {
      ++wait_;
      if (wait_ >= options_.patience && rate > static_cast<double>(static_cast<float>(options_.min_lr))) {
        Reduce(epoch, rate);
      }
    }
  }

  std::optional<State> SaveState() const override {
    return State{"ReduceLROnPlateau", {StateOf({wait_ * 1.0, cooling_ * 1.0, OrNan(best_)})}};
  }
  bool RestoreState(const std::vector<Tensor>& values) override {
    const auto numbers = NumbersOf(values, 3);
    if (!numbers) return false;
    wait_ = static_cast<int>((*numbers)[0]);
    cooling_ = static_cast<int>((*numbers)[1]);
    best_ = OptionalOf((*numbers)[2]);
    return true;
  }

  std::optional<Influence> influence() const override {
    const ConfigValue options =
        ConfigValue::Object{{"monitor", options_.monitor},     {"factor", options_.factor},
                            {"patience", options_.patience},   {"mode", static_cast<int>(options_.mode)},
                            {"min_delta", options_.min_delta}, {"cooldown", options_.cooldown},
                            {"min_lr", options_.min_lr}};
    return Influence{"ReduceLROnPlateau", options.ToJson()};
  }

 private:
  void Reduce(int epoch, double rate) {
    const double reduced = std::max(rate * options_.factor, options_.min_lr);
    host().SetLearningRate(reduced);
    if (options_.verbose > 0) {
      Say(StrCat("\nEpoch ", epoch + 1, ": ReduceLROnPlateau reducing learning rate to ", PythonNumber(reduced), "."));
    }
    cooling_ = options_.cooldown;
    wait_ = 0;
  }

  const ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  int wait_ = 0;
  int cooling_ = 0;
  std::optional<double> best_;
};

class SchedulerCallback final : public Callback {
 public:
  SchedulerCallback(std::function<double(int, double)> schedule, int verbose)
      : schedule_(std::move(schedule)), verbose_(verbose) {}

  void OnTrainBegin() override { set_epoch_ = -1; }
  void OnEpochBegin(int epoch) override {
    // If a training is continued within an epoch, the rate of this epoch is already set.
    if (epoch == set_epoch_) return;
    const double rate = schedule_(epoch, host().GetLearningRate());
    if (!std::isfinite(rate)) {
      throw InvalidArgumentError(
          StrCat("[keras/callbacks] LearningRateScheduler expected a number from its schedule "
                 "for epoch ",
                 epoch, "; got ", rate));
    }
    host().SetLearningRate(rate);
    set_epoch_ = epoch;
    if (verbose_ > 0) {
      Say(StrCat("\nEpoch ", epoch + 1, ": LearningRateScheduler setting learning rate to ", PythonNumber(rate), "."));
    }
  }
  void OnEpochEnd(int, Logs& logs) override { SetLog(logs, "learning_rate", host().GetLearningRate()); }
  std::optional<State> SaveState() const override {
    return State{"LearningRateScheduler", {StateOf({set_epoch_ * 1.0})}};
  }
  bool RestoreState(const std::vector<Tensor>& values) override {
    const auto numbers = NumbersOf(values, 1);
    if (numbers) set_epoch_ = static_cast<int>((*numbers)[0]);
    return numbers.has_value();
  }
  std::optional<Influence> influence() const override { return Influence{"LearningRateScheduler", ""}; }

 private:
  const std::function<double(int, double)> schedule_;
  const int verbose_;
  int set_epoch_ = -1;  // the epoch whose rate was set last
};

class NanCallback final : public Callback {
 public:
  void OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) override {
    if (std::isfinite(logs.loss())) return;
    Say(StrCat("Batch ", batch, ": Invalid loss, terminating training"));
    host().StopTraining();
  }
  std::optional<Influence> influence() const override { return Influence{"TerminateOnNaN", ""}; }
  std::optional<std::string> needs_batches() const override { return "TerminateOnNaN"; }
};

}  // namespace

CallbackPtr EarlyStopping(const EarlyStoppingOptions& options) {
  return std::make_shared<EarlyStoppingCallback>(options);
}

CallbackPtr ReduceLROnPlateau(const ReduceLROnPlateauOptions& options) {
  if (!(options.factor < 1.0)) {
    throw InvalidArgumentError(StrCat("[keras/callbacks] ReduceLROnPlateau expected factor < 1; got ", options.factor));
  }
  return std::make_shared<PlateauCallback>(options);
}

CallbackPtr LearningRateScheduler(std::function<double(int, double)> schedule, int verbose) {
  return std::make_shared<SchedulerCallback>(std::move(schedule), verbose);
}

CallbackPtr TerminateOnNaN() { return std::make_shared<NanCallback>(); }

}  // namespace cohort::keras
