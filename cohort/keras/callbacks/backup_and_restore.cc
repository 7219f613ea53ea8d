#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/status/cluster_file.h"
#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/files/config.h"
#include "cohort/train/session/save_attempts.h"

namespace cohort::keras {
namespace {

// A backup ends with these bytes, and then the masked CRC-32C of all bytes before them (4 bytes, little-endian). The
// HDF5 library does not look at bytes behind the end of its file.
constexpr std::string_view kTrailer = "COHBAK01";
constexpr size_t kTrailerSize = kTrailer.size() + sizeof(uint32_t);

std::string WithChecksum(std::string bytes) {
  const uint32_t crc = crc32c::Mask(crc32c::Value(bytes));
  bytes += kTrailer;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(crc >> shift & 0xff));
  return bytes;
}

// Removes the checksum. Returns "", or what is wrong with the file.
std::string RemoveChecksum(std::string* bytes) {
  const size_t size = bytes->size() - std::min(bytes->size(), kTrailerSize);
  if (std::string_view(*bytes).substr(size, kTrailer.size()) != kTrailer) {
    return "it has no checksum: it is cut off, of an earlier version, or not a backup";
  }
  const std::string all = std::exchange(*bytes, bytes->substr(0, size));
  return WithChecksum(*bytes) == all ? "" : "its checksum is wrong: it is damaged";
}

class BackupAndRestoreCallback final : public Callback {
 public:
  explicit BackupAndRestoreCallback(const BackupAndRestoreOptions& options)
      : options_(options),
        path_(options.backup_dir + "/latest.weights.h5"),
        fresh_(path_ + ".new"),
        previous_(options.backup_dir + "/previous.weights.h5"),
        attempts_(options.max_save_failures, "keras") {}

  void OnTrainBegin() override {
    since_save_ = 0;
    interrupted_ = false;
    if (host().is_chief()) {
      CreateDirectories(options_.backup_dir);
      RemoveAbandonedFiles(options_.backup_dir);
      WriteClusterFileOf("", options_.backup_dir);
    }
    std::string from = path_;
    const std::optional<std::string> backup = NewestIntact(&from);
    latest_is_intact_ = from == path_ && backup.has_value();
    host().RestoreTraining(backup, from);
  }
  void OnTrainBatchEnd(int64_t, const BatchLogs&) override {
    if (options_.save_every_batches == 0 || ++since_save_ < options_.save_every_batches) return;
    since_save_ = 0;
    Save(/*must=*/false);
  }
  void OnEpochEnd(int, Logs&) override {
    if (options_.save_every_batches == 0) Save(/*must=*/false);
  }
  void OnTrainInterrupted() override {
    interrupted_ = true;
    Save(/*must=*/true);
  }
  void OnTrainEnd(const Logs&) override {
    if (!options_.delete_checkpoint || interrupted_) return;
    // Waits for all workers. If one is lost before, the others lose only the steps since the last backup.
    host().AwaitWorkers();
    if (!host().is_chief()) return;
    // The newest last: after a kill between two of these, the next Fit finds the end of this training.
    const std::string addresses = (std::filesystem::path(options_.backup_dir) / kClusterFile).string();
    for (const std::string& path : {addresses, previous_, path_, fresh_}) RemoveFile(path);
  }
  std::optional<std::string> needs_batches() const override {
    return options_.save_every_batches > 0 ? std::optional<std::string>("BackupAndRestore with save_every_batches")
                                           : std::nullopt;
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
  // The backup before stays as the previous one, for the case that the newest is damaged. At any time there is a whole
  // file: fresh_, which is the newest one if it is there, or path_.
  void Save(bool must) {
    std::string backup = host().BackUpTraining();
    if (!host().is_chief()) return;
    const auto write = [&] { Write(std::move(backup)); };
    if (must) return write();
    attempts_.Try(write);
  }
  void Write(std::string backup) {
    WriteFileAtomically(fresh_, WithChecksum(std::move(backup)));
    if (latest_is_intact_ && FileExists(path_)) RenameFile(path_, previous_);
    RenameFile(fresh_, path_);
    latest_is_intact_ = true;
  }
  // Returns the newest backup whose checksum is right, and sets *from to its path. Returns nullopt if there is no file.
  // Throws DataLossError if all files are damaged.
  std::optional<std::string> NewestIntact(std::string* from) const {
    std::vector<std::string> refused;
    for (const std::string& path : {fresh_, path_, previous_}) {
      if (!FileExists(path)) continue;
      std::string bytes = ReadFile(path);
      const std::string wrong = RemoveChecksum(&bytes);
      if (wrong.empty()) {
        *from = path;
        return bytes;
      }
      refused.push_back(StrCat("'", path, "' (", wrong, ")"));
      LogWarning("keras", "the backup ", refused.back(), " is passed over");
    }
    if (refused.empty()) return std::nullopt;
    throw DataLossError(
        StrCat("[keras/callbacks] BackupAndRestore expected a backup of a training with a checksum; got ",
               StrJoin(refused, ", "), "; remove these files to begin the training anew"));
  }

  const BackupAndRestoreOptions options_;
  const std::string path_;
  const std::string fresh_;
  const std::string previous_;
  // A file at path_ whose checksum is wrong, or which this object has not looked at, does not become the previous one.
  bool latest_is_intact_ = false;
  int64_t since_save_ = 0;
  bool interrupted_ = false;
  train::SaveAttempts attempts_;
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
