// The callbacks of Keras 3, with Keras's arguments and defaults. `monitor` is a name in the logs.
// If several processes train together, all of them must have the same BackupAndRestore (its folder is not compared),
// EarlyStopping, ReduceLROnPlateau, LearningRateScheduler (its function is not compared), SwapEMAWeights and
// TerminateOnNaN, in the same order. Otherwise Fit throws InvalidArgumentError in all processes. The other callbacks of
// this file write only in the chief, and the other processes need not have them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/callback.h"

namespace cohort::keras {

// Says whether smaller or larger values are better. kAuto: CallbackHost::DirectionOf of the monitored value decides. If
// it returns kNone, Fit throws InvalidArgumentError before the first step.
enum class MonitorMode { kAuto, kMin, kMax };

struct COHORT_EXPORT ModelCheckpointOptions {
  // "{epoch}" and "{batch}" (counted from 1), "{epoch:02d}", and "{NAME}" or "{NAME:.4f}" of the logs are replaced by
  // values. It must end in ".weights.h5" if save_weights_only is true, and in ".keras" if it is false.
  std::string filepath;
  std::string monitor = "val_loss";
  int verbose = 0;
  bool save_best_only = false;
  bool save_weights_only = false;
  MonitorMode mode = MonitorMode::kAuto;
  int64_t save_every_batches = 0;  // 0: after each epoch
  // With save_best_only, nothing is saved until the monitored value is better than this.
  std::optional<double> initial_value_threshold;
};
// The chief saves with CallbackHost::Save or SaveWeights. `monitor` and `mode` are used only with save_best_only; if
// the monitored value is then missing in the logs, logs a warning and saves. Throws InvalidArgumentError for a filepath
// with another ending. The chief makes the folder of the files if it is missing. Fit throws before the first step if
// the folder cannot be made, and UnimplementedError if whole models are saved and a layer cannot be described in a
// file.
COHORT_EXPORT CallbackPtr ModelCheckpoint(const ModelCheckpointOptions& options);

struct COHORT_EXPORT BackupAndRestoreOptions {
  std::string backup_dir;          // a folder for this callback alone; made if it is missing
  int64_t save_every_batches = 0;  // 0: after each epoch
  bool delete_checkpoint = true;   // delete the backup when Fit has ended without an error
  // A backup that cannot be written, because the disk is full, is a warning, and the next one is tried. So many in a
  // row end the training with the error; those of one second count once. At least 1. A backup because of SIGTERM must
  // succeed.
  int max_save_failures = 5;
};
// Keeps the state of the training (CallbackHost::BackUpTraining) in `<backup_dir>/latest.weights.h5`, and the state
// before it in `previous.weights.h5`. Both have a checksum. A process that was killed while it saved may leave a
// complete `latest.weights.h5.new`, which is the newest state. If a Fit with the same model, data and options finds
// these files, it continues from the newest one that is intact. If all files are damaged or have no checksum, it throws
// DataLossError. The final weights of a training that continues are those of an uninterrupted one, bit for bit on the
// same machine. EarlyStopping, ReduceLROnPlateau, LearningRateScheduler and ModelCheckpoint continue with their states.
// So does a callback of the program that overrides SaveState and RestoreState. BackupAndRestore is called after all
// other callbacks, wherever it is in the list. If several processes train together, the chief writes the files. When
// Fit begins, every process reads the files in its own `backup_dir`, and all of them must read the same bytes. So the
// folder must be on a shared disk, or the program copies all of the chief's files to each machine and removes other
// files there. The number of processes must be the same as before.
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
// Stops the training at the end of an epoch if `monitor` has not improved by more than min_delta for `patience` epochs.
COHORT_EXPORT CallbackPtr EarlyStopping(const EarlyStoppingOptions& options = {});

struct COHORT_EXPORT ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;  // less than 1
  int patience = 10;
  int verbose = 0;
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 1e-4;
  int cooldown = 0;
  double min_lr = 0.0;
};
// At the end of an epoch, multiplies the learning rate by `factor` if `monitor` has not improved by more than min_delta
// for `patience` epochs. The rate does not become smaller than min_lr. Adds learning_rate to the logs.
COHORT_EXPORT CallbackPtr ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});

// At the begin of each epoch, sets the learning rate to schedule(epoch from 0, current rate). Adds learning_rate to the
// logs.
COHORT_EXPORT CallbackPtr LearningRateScheduler(std::function<double(int epoch, double rate)> schedule,
                                                int verbose = 0);

// Writes one row for each epoch: "epoch" (from 0) and the logs, sorted by name. The logs of the first epoch
// decide the columns. If these logs have no "val_" values, each value gets a second column for a later validation, with
// "val_" in front of its name. A value that an epoch does not have is "NA". Lines end in "\r\n", as in Python's csv
// module. Fit throws an error that names the file if the file cannot be written.
COHORT_EXPORT CallbackPtr CSVLogger(const std::string& filename, const std::string& separator = ",",
                                    bool append = false);

// Stops training when a batch's loss is NaN or infinite.
COHORT_EXPORT CallbackPtr TerminateOnNaN();

// Exchanges the trained weights and their moving averages (use_ema of the optimizer) before each evaluation, and back
// after it, so that the metrics are those of the averages. With `swap_on_epoch` it exchanges them at the end of each
// epoch, and back at the begin of the next one: then a ModelCheckpoint after it in the list saves the averages. The
// weights must not be changed by other callbacks meanwhile. If Fit or Evaluate throws meanwhile, the averages stay in
// the model, and the next Fit or TrainOnBatch puts the weights back. Fit and Evaluate throw FailedPreconditionError if
// the optimizer has use_ema=false, or if it has not been applied before Evaluate. They throw InvalidArgumentError with
// a ParameterServerStrategy, because a lost connection may repeat the exchange.
COHORT_EXPORT CallbackPtr SwapEMAWeights(bool swap_on_epoch = false);

struct COHORT_EXPORT TensorBoardOptions {
  std::string log_dir = "logs";
  int histogram_freq = 0;  // n > 0: writes histograms of all weights in every n-th epoch; 0: writes none
  bool write_graph = true;
  // true: also writes epoch_steps_per_second and, if update_every_batches is not 0, batch_steps_per_second.
  bool write_steps_per_second = false;
  // n > 0: also writes "batch_..." values, after every n-th batch. 0: writes only values of epochs.
  int64_t update_every_batches = 0;
};
// Writes event files under log_dir/train and log_dir/validation: epoch_loss, epoch_<metric>, epoch_learning_rate,
// evaluation_<metric>_vs_iterations. The steps of the events are epochs (from 0), batches or iterations, as the names
// say.
COHORT_EXPORT CallbackPtr TensorBoard(const TensorBoardOptions& options = {});

}  // namespace cohort::keras
