// Which checkpoints a directory has: the `checkpoint` state file (text form of CheckpointState, as TensorFlow
// keeps it), the newest complete checkpoint, and deletion.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/export.h"

namespace cohort {

inline constexpr char kCheckpointStateFile[] = "checkpoint";

struct COHORT_EXPORT CheckpointState {
  std::string model_checkpoint_path;                    // prefix of the newest
  std::vector<std::string> all_model_checkpoint_paths;  // prefixes, oldest first
  std::vector<double> all_model_checkpoint_timestamps;  // seconds since 1970, empty or one a path
  double last_preserved_timestamp = 0;                  // seconds since 1970, 0: none
};

// Reads DIR/FILE; relative paths come back joined to `dir`. Nothing where there is no such file or (with a
// warning) where it cannot be read or parsed.
COHORT_EXPORT std::optional<CheckpointState> ReadCheckpointState(const std::string& dir,
                                                                 const std::string& file = kCheckpointStateFile);

// Replaces DIR/FILE atomically. The newest path is put at the end of the list where it is missing. Paths are
// written relative to `dir` when `relative_paths` is set or `dir` is itself relative, else as given. Throws
// as core/file.h says.
COHORT_EXPORT void WriteCheckpointState(const std::string& dir, CheckpointState state, bool relative_paths,
                                        const std::string& file = kCheckpointStateFile);

// Whether the index can be read and every data file is there with the size that it needs. Without reading the
// tensors.
COHORT_EXPORT Status CheckCheckpointComplete(const std::string& prefix);

// The prefix of the newest complete checkpoint; "" where there is none. The state file's word counts: its
// newest path, then those before it; one that is missing, torn or corrupt is passed over with a warning.
// Where the state file is missing, or names no complete one, the directory's own *.index files are tried, the
// last modified first.
COHORT_EXPORT std::string LatestCheckpoint(const std::string& dir, const std::string& file = kCheckpointStateFile);

// Every checkpoint that a restore may try, newest first: those that the state file names, then the directory's other
// *.index files. Nothing is said of what they contain.
struct COHORT_EXPORT CheckpointCandidates {
  std::vector<std::string> named;
  std::vector<std::string> others;
};
COHORT_EXPORT CheckpointCandidates FindCheckpoints(const std::string& dir,
                                                   const std::string& file = kCheckpointStateFile);

// Removes a checkpoint's files, the index first, so that it never is half there; no error for missing ones.
COHORT_EXPORT void DeleteCheckpoint(const std::string& prefix);

// Removes files under temporary names (*.tempstate*) in `dir` that writers left behind when they were killed;
// only the one task that writes there may call it. Returns their count.
COHORT_EXPORT int RemoveAbandonedFiles(const std::string& dir);

}  // namespace cohort
