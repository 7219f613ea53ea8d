#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {
namespace {

// A backup ends with these bytes, and then the masked CRC-32C of all bytes before them (4 bytes, little-endian). The HDF5
// library does not look at bytes behind the end of its file.
constexpr std::string_view kTrailer = "COHBAK01";
constexpr size_t kTrailerSize = kTrailer.size() + sizeof(uint32_t);

std::string WithChecksum(std::string bytes) {
  const uint32_t crc = crc32c::Mask(crc32c::Value(bytes));
  bytes += kTrailer;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(crc >> shift & 0xff));
  return bytes;
}

// Removes the checksum. Returns false if there is none or if it is wrong.
bool RemoveChecksum(std::string* bytes) {
  if (bytes->size() < kTrailerSize) return false;
  const std::string_view all = *bytes;
  const std::string_view content = all.substr(0, all.size() - kTrailerSize);
  if (WithChecksum(std::string(content)) != all) return false;
  bytes->resize(content.size());
  return true;
}

class BackupAndRestoreCallback final : public Callback {
 public:
  explicit BackupAndRestoreCallback(const BackupAndRestoreOptions& options)
      : options_(options),
        path_(options.backup_dir + "/latest.weights.h5"),
        previous_(options.backup_dir + "/previous.weights.h5") {}

  void OnTrainBegin() override {
    since_save_ = 0;
    if (host().is_chief()) {
      CreateDirectories(options_.backup_dir);
      RemoveAbandonedFiles(options_.backup_dir);
    }
    std::string from = path_;
    const std::optional<std::string> backup = NewestIntact(&from);
    if (host().RestoreTraining(backup, from)) LogInfo("keras", "training goes on from '", from, "'");
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
    if (!host().is_chief()) return;
    RemoveFile(path_);
    RemoveFile(previous_);
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
  // The backup before stays as the previous one, for the case that the newest is damaged.
  void Save() {
    std::string backup = host().BackUpTraining();
    if (!host().is_chief()) return;
    const std::string fresh = path_ + ".new";
    WriteFileAtomically(fresh, WithChecksum(std::move(backup)));
    if (FileExists(path_)) RenameFile(path_, previous_);
    RenameFile(fresh, path_);
  }
  // Returns the newest backup whose checksum is right, and sets *from to its path. Returns nullopt if there is no file.
  // Throws DataLossError if all files are damaged.
  std::optional<std::string> NewestIntact(std::string* from) const {
    std::vector<std::string> damaged;
    for (const std::string& path : {path_, previous_}) {
      if (!FileExists(path)) continue;
      std::string bytes = ReadFile(path);
      if (RemoveChecksum(&bytes)) {
        *from = path;
        return bytes;
      }
      damaged.push_back(path);
      LogWarning("keras", "the backup '", path, "' is damaged (its checksum is wrong), and is passed over");
    }
    if (damaged.empty()) return std::nullopt;
    throw DataLossError(StrCat("[keras/callbacks] BackupAndRestore expected a backup of a training with a right checksum; ",
                               "these are damaged: ", StrJoin(damaged, ", "),
                               "; remove them to begin the training anew"));
  }

  const BackupAndRestoreOptions options_;
  const std::string path_;
  const std::string previous_;
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
