#include <iostream>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/callbacks/monitor.h"
#include "cohort/keras/callbacks/path_template.h"
#include "cohort/keras/callbacks/state_values.h"

namespace cohort::keras {
namespace {

bool EndsIn(const std::string& text, const std::string& ending) {
  return text.size() > ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

class ModelCheckpointCallback final : public Callback {
 public:
  explicit ModelCheckpointCallback(const ModelCheckpointOptions& options)
      : options_(options),
        monitor_("ModelCheckpoint", options.monitor, options.mode),
        best_(options.initial_value_threshold) {}

  void OnTrainBegin() override {
    if (options_.save_best_only) monitor_.Resolve(host());
    if (!options_.save_weights_only) host().CheckCanBeSaved();
    // The rest of the folders is known when the values are: "runs/{epoch}/model.keras".
    if (host().is_chief()) MakeFolderOf(options_.filepath.substr(0, options_.filepath.find_first_of("{}")));
  }
  void OnEpochBegin(int epoch) override { epoch_ = epoch; }
  void OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) override {
    if (options_.save_every_batches == 0) return;
    // Counted across epochs.
    if (++since_save_ < options_.save_every_batches) return;
    since_save_ = 0;
    Logs values = logs.Running();
    SetLog(values, "batch", static_cast<double>(batch + 1));
    SaveIfWanted(values);
  }
  void OnEpochEnd(int epoch, Logs& logs) override {
    if (options_.save_every_batches == 0) SaveIfWanted(logs);
  }
  std::optional<std::string> needs_batches() const override {
    return options_.save_every_batches > 0 ? std::optional<std::string>("ModelCheckpoint") : std::nullopt;
  }
  std::optional<State> SaveState() const override {
    return State{"ModelCheckpoint", {StateOf({static_cast<double>(since_save_), OrNan(best_)})}};
  }
  bool RestoreState(const std::vector<Tensor>& values) override {
    const auto numbers = NumbersOf(values, 2);
    if (!numbers) return false;
    since_save_ = static_cast<int64_t>((*numbers)[0]);
    best_ = OptionalOf((*numbers)[1]);
    return true;
  }

 private:
  void SaveIfWanted(const Logs& logs) {
    const std::string prefix = StrCat("\nEpoch ", epoch_ + 1, ": ");
    if (!options_.save_best_only) {
      Save(logs, prefix);
      return;
    }
    const std::optional<double> current = monitor_.Find(logs);
    if (!current) {
      Save(logs, prefix);
    } else if (monitor_.Improves(*current, best_)) {
      const std::string change =
          StrCat(monitor_.name(), " improved from ", FiveDecimals(best_), " to ", FiveDecimals(current), ", ");
      Save(logs, prefix + change);
      best_ = current;
    } else {
      Say(StrCat(prefix, monitor_.name(), " did not improve from ", FiveDecimals(best_)));
    }
  }

  void Save(Logs logs, const std::string& message) {
    if (!host().is_chief()) return;
    SetLog(logs, "epoch", epoch_ + 1);
    const std::string path = FillIn(options_.filepath, logs);
    MakeFolderOf(path);
    Say(StrCat(message, "saving model to ", path));
    if (options_.save_weights_only) {
      host().SaveWeights(path);
    } else {
      host().Save(path);
    }
  }

  void MakeFolderOf(const std::string& path) const {
    try {
      CreateDirectories(DirectoryOf(path));
    } catch (const Error& error) {
      ThrowError(error.code(), StrCat(error.what(), "; ModelCheckpoint needs it for '", options_.filepath,
                                      "'; give a filepath in a folder that the program may make"));
    }
  }

  void Say(const std::string& line) const {
    if (options_.verbose > 0 && host().is_chief()) std::cout << line << std::endl;
  }

  const ModelCheckpointOptions options_;
  Monitor monitor_;
  std::optional<double> best_;
  int epoch_ = 0;
  int64_t since_save_ = 0;
};

}  // namespace

CallbackPtr ModelCheckpoint(const ModelCheckpointOptions& options) {
  const char* ending = options.save_weights_only ? ".weights.h5" : ".keras";
  if (!EndsIn(options.filepath, ending)) {
    throw InvalidArgumentError(StrCat("[keras/callbacks] ModelCheckpoint expected a filepath that ends in ", ending,
                                      options.save_weights_only ? " (save_weights_only)" : "", "; got '",
                                      options.filepath, "'"));
  }
  if (options.save_every_batches < 0) {
    throw InvalidArgumentError(
        StrCat("[keras/callbacks] ModelCheckpoint expected save_every_batches of at least 0; "
               "got ",
               options.save_every_batches));
  }
  return std::make_shared<ModelCheckpointCallback>(options);
}

}  // namespace cohort::keras
