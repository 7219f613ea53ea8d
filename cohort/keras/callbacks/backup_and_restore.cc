#include <optional>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {
namespace {

class BackupAndRestoreCallback final : public Callback {
 public:
  explicit BackupAndRestoreCallback(const BackupAndRestoreOptions& options)
      : options_(options), path_(options.backup_dir + "/latest.weights.h5") {}

  void OnTrainBegin() override {
    since_save_ = 0;
    if (host().is_chief()) {
      CreateDirectories(options_.backup_dir);
      RemoveAbandonedFiles(options_.backup_dir);
    }
    std::optional<std::string> backup;
    if (FileExists(path_)) backup = ReadFile(path_);
    if (host().RestoreTraining(backup, path_)) LogInfo("keras", "training goes on from '", path_, "'");
  }
  void OnTrainBatchEnd(int64_t, const BatchLogs&) override {
    if (options_.save_every_batches == 0 || ++since_save_ < options_.save_every_batches) return;
    since_save_ = 0;
    Save();
  }
  void OnEpochEnd(int, Logs&) override {
    if (options_.save_every_batches == 0) Save();
  }
  void OnTrainEnd(const Logs&) override {
    if (!options_.delete_checkpoint) return;
    // Waits for all workers. If one is lost before, the others lose only the steps since the last backup.
    host().AwaitWorkers();
    if (host().is_chief()) RemoveFile(path_);
  }
  std::optional<std::string> needs_batches() const override {
    return options_.save_every_batches > 0 ? std::optional<std::string>("BackupAndRestore") : std::nullopt;
  }
  // A backup has what the other callbacks remember of the batch or epoch that has just ended.
  bool comes_last() const override { return true; }
  // The folder is not included, because each process may see the same files under another path.
  std::optional<Influence> influence() const override {
    const ConfigValue options = ConfigValue::Object{{"save_every_batches", options_.save_every_batches},
                                                    {"delete_checkpoint", options_.delete_checkpoint}};
    return Influence{"BackupAndRestore", options.ToJson()};
  }

 private:
  void Save() {
    const std::string backup = host().BackUpTraining();
    if (host().is_chief()) WriteFileAtomically(path_, backup);
  }

  const BackupAndRestoreOptions options_;
  const std::string path_;
  int64_t since_save_ = 0;
};

}  // namespace

CallbackPtr BackupAndRestore(const BackupAndRestoreOptions& options) {
  if (options.backup_dir.empty()) {
    throw InvalidArgumentError("[keras/callbacks] BackupAndRestore expected a backup_dir; got none");
  }
  if (options.save_every_batches < 0) {
    throw InvalidArgumentError(
        StrCat("[keras/callbacks] BackupAndRestore expected save_every_batches of at least 0; got ",
               options.save_every_batches));
  }
  return std::make_shared<BackupAndRestoreCallback>(options);
}

}  // namespace cohort::keras
