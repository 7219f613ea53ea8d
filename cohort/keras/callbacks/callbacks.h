// The callbacks that Keras 3 comes with, with its arguments and defaults. `monitor` is a name in the logs.
// Where several processes train together all of them have the same BackupAndRestore, EarlyStopping, ReduceLROnPlateau,
// LearningRateScheduler (its function is not compared) and TerminateOnNaN, in the same order, else Fit throws
// InvalidArgumentError at all; the others may be at the chief alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/callback.h"

namespace cohort::keras {

// Whether less or more is better. kAuto: as the host says of the monitored metric; where it does not know, training
// fails at its begin with InvalidArgumentError.
enum class MonitorMode { kAuto, kMin, kMax };

struct COHORT_EXPORT ModelCheckpointOptions {
  // "{epoch}" and "{batch}" (from 1), "{epoch:02d}", and "{NAME}" or "{NAME:.4f}" of the logs are filled in. Ends in
  // ".keras", with save_weights_only in ".weights.h5".
  std::string filepath;
  std::string monitor = "val_loss";
  int verbose = 0;
  bool save_best_only = false;
  bool save_weights_only = false;
  MonitorMode mode = MonitorMode::kAuto;
  int64_t save_every_batches = 0;                 // 0: after each epoch
  std::optional<double> initial_value_threshold;  // with save_best_only: what the first value has to be better than
};
// Saves by CallbackHost::Save or SaveWeights. Where the monitored value is missing it warns and saves.
COHORT_EXPORT CallbackPtr ModelCheckpoint(const ModelCheckpointOptions& options);

struct COHORT_EXPORT BackupAndRestoreOptions {
  std::string backup_dir;          // of its own; made where it is not there
  int64_t save_every_batches = 0;  // 0: after each epoch
  bool delete_checkpoint = true;   // when Fit has come to its end
};
// Keeps the state of the training in `<backup_dir>/latest.weights.h5` (CallbackHost::BackUpTraining), replaced as a
// whole; a Fit with the same model, data and options that finds one there goes on from it and ends with the same
// weights, to the last bit on the same machine, as if nothing had happened. EarlyStopping, ReduceLROnPlateau,
// LearningRateScheduler and ModelCheckpoint go on with what they remembered, and so does a callback of the program's
// own that overrides SaveState and RestoreState. It is called behind all other callbacks, wherever it is in the list.
// Several processes: the chief writes; all read the same file when Fit begins, so it is on a
// disk that they share, or copied to each machine. As many have to go on as there were.
COHORT_EXPORT CallbackPtr BackupAndRestore(const BackupAndRestoreOptions& options);

struct COHORT_EXPORT EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0.0;
  int patience = 0;
  int verbose = 0;
  MonitorMode mode = MonitorMode::kAuto;
  std::optional<double> baseline;
  bool restore_best_weights = false;
  int start_from_epoch = 0;
};
// Stops when `monitor` has not improved by more than min_delta for `patience` epochs.
COHORT_EXPORT CallbackPtr EarlyStopping(const EarlyStoppingOptions& options = {});

struct COHORT_EXPORT ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;  // below 1
  int patience = 10;
  int verbose = 0;
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 1e-4;
  int cooldown = 0;
  double min_lr = 0.0;
};
// Multiplies the learning rate by `factor` when `monitor` has not improved for `patience` epochs; logs learning_rate.
COHORT_EXPORT CallbackPtr ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});

// At each epoch's begin the rate becomes schedule(epoch from 0, rate now); logs learning_rate.
COHORT_EXPORT CallbackPtr LearningRateScheduler(std::function<double(int epoch, double rate)> schedule,
                                                int verbose = 0);

// One row an epoch: "epoch" (from 0) and the logs by name; "NA" where training stopped before a value. Lines end in
// "\r\n" as Python's csv module writes them. Throws what core/file.h throws.
COHORT_EXPORT CallbackPtr CSVLogger(const std::string& filename, const std::string& separator = ",",
                                    bool append = false);

// Stops training when a batch's loss is NaN or infinite.
COHORT_EXPORT CallbackPtr TerminateOnNaN();

struct COHORT_EXPORT TensorBoardOptions {
  std::string log_dir = "logs";
  int histogram_freq = 0;  // epochs between histograms of all weights; 0: none
  bool write_graph = true;
  bool write_steps_per_second = false;  // epoch_steps_per_second, with update_every_batches batch_steps_per_second too
  int64_t update_every_batches = 0;  // also "batch_..." values, each time that many batches are done; 0: epochs alone
};
// Event files under log_dir/train and log_dir/validation: epoch_loss, epoch_<metric>, epoch_learning_rate,
// evaluation_<metric>_vs_iterations; steps are epochs from 0, batches or iterations.
COHORT_EXPORT CallbackPtr TensorBoard(const TensorBoardOptions& options = {});

}  // namespace cohort::keras
