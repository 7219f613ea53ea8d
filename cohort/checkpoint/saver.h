// Saver: the variables of a graph to and from checkpoints on disk, after TensorFlow's tf.train.Saver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/checkpoint/checkpoint_rotation.h"
#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/export.h"
#include "cohort/core/mutex.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort {

class BundleReader;
class VariableSnapshots;

struct COHORT_EXPORT SaverOptions {
  std::vector<ops::Variable> var_list;           // empty: all of the graph that are not local
  int max_to_keep = 5;                           // 0: all, and the state file lists only the last
  double keep_checkpoint_every_n_hours = 10000;  // one in that many hours is never deleted
  // Each task writes its variables itself, into a folder that all share; else the process that calls Save
  // writes all.
  bool sharded = false;
  bool pad_step_number = false;      // "model.ckpt-00000042"
  bool save_relative_paths = false;  // in the state file
  std::string latest_filename = kCheckpointStateFile;
  std::string name = "save";  // name scope of the nodes
};

// Thread-safe; one Save or Restore at a time. The graph must outlive it. Works with any session of the graph.
class COHORT_EXPORT Saver {
 public:
  // Adds the nodes it needs: before the graph is finalized, after the variables. Throws InvalidArgumentError
  // where there is no variable, or two of one name.
  explicit Saver(Graph& graph, const SaverOptions& options = {});
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Writes the checkpoint "<save_path>-<global_step>" (without a step: save_path), then the state file beside
  // it, then deletes what is no longer kept. Returns the prefix. On each task the values are those between
  // two steps' updates. Whatever happens, a checkpoint is there as a whole or not at all, and earlier ones
  // stay. Throws what the session throws (FailedPreconditionError for a variable without a value;
  // DeadlineExceededError where a step has been in the middle of its updates for 30 s) and what the files
  // throw (ResourceExhaustedError for a full disk).
  std::string Save(Session& session, const std::string& save_path, std::optional<int64_t> global_step = std::nullopt)
      COHORT_EXCLUDES(mu_);

  // Gives every variable its value from the checkpoint; they need not be initialized. Everything is read and
  // checked before the first one is assigned: NotFoundError "Key X not found in checkpoint",
  // InvalidArgumentError for another dtype or shape, DataLossError for damaged files. In memory: the largest
  // variable.
  void Restore(Session& session, const std::string& prefix) COHORT_EXCLUDES(mu_);

  // Restores the newest intact checkpoint of `dir`, passing over torn and damaged ones with a warning, and
  // returns its prefix; "" where there is none. An intact one that does not fit the graph is an error (as
  // Restore).
  std::string RestoreLatest(Session& session, const std::string& dir) COHORT_EXCLUDES(mu_);

  // Counts what an earlier process has saved in `dir`, by its state file, among those to keep and to delete.
  void RecoverLastCheckpoints(const std::string& dir) COHORT_EXCLUDES(mu_);
  // Prefixes that are kept, oldest first.
  std::vector<std::string> last_checkpoints() const COHORT_EXCLUDES(mu_);
  // By name.
  const std::vector<VariableInfo*>& variables() const { return variables_; }

 private:
  struct Assignment {
    Output fed;
    Node* assign;
  };
  std::string PrefixOf(const std::string& save_path, std::optional<int64_t> global_step) const;
  void CheckFits(const BundleReader& reader) const;
  void Assign(Session& session, const BundleReader& reader) const;

  const SaverOptions options_;
  std::vector<VariableInfo*> variables_;
  std::unique_ptr<VariableSnapshots> snapshots_;
  std::vector<Assignment> assignments_;  // one a variable
  mutable Mutex mu_;
  CheckpointRotation rotation_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
