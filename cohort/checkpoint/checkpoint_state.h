// The checkpoints of a directory: the state file `checkpoint` (TensorFlow's CheckpointState as text), the newest
// complete checkpoint, and deletion of files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/export.h"

namespace cohort {

inline constexpr char kCheckpointStateFile[] = "checkpoint";

// The contents of a state file.
struct COHORT_EXPORT CheckpointState {
  std::string model_checkpoint_path;                    // prefix of the newest checkpoint
  std::vector<std::string> all_model_checkpoint_paths;  // prefixes, oldest first
  std::vector<double> all_model_checkpoint_timestamps;  // seconds since 1970; may be fewer than the paths, or none
  // TensorFlow's field. Some checkpoints are never deleted. This is the time at which the newest of them was saved, in
  // seconds since 1970. 0: not known.
  double last_preserved_timestamp = 0;
};

// Reads DIR/FILE. Joins relative paths to `dir`. Returns nullopt if there is no such file. Also returns nullopt, and
// logs a warning, if the file cannot be read or parsed.
COHORT_EXPORT std::optional<CheckpointState> ReadCheckpointState(const std::string& dir,
                                                                 const std::string& file = kCheckpointStateFile);

// Replaces DIR/FILE atomically. If all_model_checkpoint_paths does not end with model_checkpoint_path, appends that
// path in the file. Writes paths relative to `dir` if `relative_paths` is true or `dir` itself is relative; otherwise
// writes them as given. Throws the errors of WriteFileAtomically, such as ResourceExhaustedError if the disk is full.
COHORT_EXPORT void WriteCheckpointState(const std::string& dir, CheckpointState state, bool relative_paths,
                                        const std::string& file = kCheckpointStateFile);

// Returns OK if the index can be read and every data file is there and long enough, else the error. Does not read the
// tensors.
COHORT_EXPORT Status CheckCheckpointComplete(const std::string& prefix);

// Returns the prefix of the newest complete checkpoint, or "" if there is none. Tries the state file's newest path,
// then the earlier ones in the list. If the state file is missing or names no complete checkpoint, tries the
// directory's other *.index files, beginning with the one that was modified last. A checkpoint is complete if
// CheckCheckpointComplete returns OK. The function logs a warning for each one that it skips.
COHORT_EXPORT std::string LatestCheckpoint(const std::string& dir, const std::string& file = kCheckpointStateFile);

// The checkpoints that a restore may try, newest first. They may be incomplete or damaged.
struct COHORT_EXPORT CheckpointCandidates {
  // The prefixes that the state file names, the newest first.
  std::vector<std::string> named;
  // The prefixes of the other *.index files in the directory, the one that was modified last first.
  std::vector<std::string> others;
};
COHORT_EXPORT CheckpointCandidates FindCheckpoints(const std::string& dir,
                                                   const std::string& file = kCheckpointStateFile);

// Returns the first of FindCheckpoints for which `check`, called with the prefix, returns OK. Logs a warning for each
// one that it skips. Looks again if the state file has changed meanwhile, because another process may save, and delete
// what is old. Returns "" if there is none and the state file names none, too. Throws DataLossError if the state file
// names checkpoints, or is damaged, and none can be used; the error has each prefix with the error of `check`.
COHORT_EXPORT std::string NewestUsableCheckpoint(const std::string& dir, const std::string& file,
                                                 const std::function<Status(const std::string&)>& check);

// Removes a checkpoint's files and those of IteratorSaver beside it, but not the temporary files of a writer. Removes
// the index first, because a checkpoint without an index counts as absent. Missing files are no error. Throws
// PermissionDeniedError, for example, if a file cannot be removed.
COHORT_EXPORT void DeleteCheckpoint(const std::string& prefix);

// Removes the temporary files (*.tempstate*) of writers that were killed. Requires: no other task writes to `dir`.
// Returns the number of files.
COHORT_EXPORT int RemoveAbandonedFiles(const std::string& dir);

}  // namespace cohort
