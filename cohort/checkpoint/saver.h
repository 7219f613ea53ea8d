// Saver: writes the variables of a graph into checkpoints on disk, and restores them. It follows TensorFlow's
// tf.train.Saver.
#pragma once

#include <cstdint>
#include <list>
#include <map>
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
  std::vector<ops::Variable> var_list;  // empty: all variables of the graph that are not local
  // Variables under other names in the checkpoint than their own, such as the result of
  // ExponentialMovingAverage::variables_to_restore. If it is not empty, these are the variables, and var_list must be
  // empty. If a variable is some rows of a variable "w", as "w/part_0", its name must begin with its own name; the
  // checkpoint has the whole with "w" in its place.
  std::map<std::string, ops::Variable> names;
  int max_to_keep = 5;                           // 0: keep all; the state file then lists only the last one
  double keep_checkpoint_every_n_hours = 10000;  // one checkpoint in this many hours is never deleted
  // If true, each task writes the values that it holds into a folder that all tasks must share. If false, the process
  // that calls Save writes everything.
  bool sharded = false;
  bool pad_step_number = false;                        // true: "model.ckpt-00000042"
  bool save_relative_paths = false;                    // write relative paths into the state file
  std::string latest_filename = kCheckpointStateFile;  // name of the state file
  std::string name = "save";                           // name scope of the saver's nodes
};

// Saves and restores the variables of one graph, through any session of that graph. The program owns it; the graph must
// outlive it. Thread-safe: all functions except variables() run one at a time, so a call waits for one that is running.
class COHORT_EXPORT Saver {
 public:
  // Adds the nodes that it needs to the graph. Requires: the variables are made, and the graph is not finalized. Throws
  // InvalidArgumentError if there is no variable, if two have the same name, if one belongs to another graph, if both
  // var_list and names are given, or if max_to_keep or keep_checkpoint_every_n_hours is negative.
  explicit Saver(Graph& graph, const SaverOptions& options = {});
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Writes the checkpoint with the prefix "<save_path>-<global_step>", or `save_path` if there is no step. Then writes
  // the state file in the same folder. Then deletes checkpoints that are no longer kept. If this deletion fails, only
  // logs a warning. Returns the prefix. The values of one device are taken together, between two update sets of its
  // task. Devices are read one after another, so steps may update variables in between. If the call fails or the
  // process ends, the new checkpoint is complete or absent. Earlier checkpoints stay until the new one is complete,
  // except one with the same prefix. Throws InvalidArgumentError if `save_path` has no file name. Throws what the
  // session throws: FailedPreconditionError if a variable has no value, DeadlineExceededError if a step stays in the
  // middle of its updates for 30 s. Throws what writing throws, such as ResourceExhaustedError for a full disk. If
  // `sharded` is true, throws FailedPreconditionError if a task does not share the folder of `save_path`.
  std::string Save(Session& session, const std::string& save_path, std::optional<int64_t> global_step = std::nullopt)
      COHORT_EXCLUDES(mu_);

  // Assigns every variable its value in the checkpoint. The variables need not be initialized. First reads and
  // checks all values, but does not keep them. Only then reads them again, a few at a time, and assigns them. Throws
  // NotFoundError if there is no such checkpoint or if it lacks a variable ("Key X not found in checkpoint"),
  // InvalidArgumentError for another dtype or shape (but a variable of int64 takes a value of int32 or uint8, and one
  // of int32 a value of uint8), DataLossError for damaged files, and what the session throws. Needs memory for 4 MiB of
  // values, or for the largest variable if that is larger.
  void Restore(Session& session, const std::string& prefix) COHORT_EXCLUDES(mu_);

  // Restores the newest intact checkpoint of `dir` and returns its prefix. Returns "" if there is none. If `only` is
  // not empty, assigns only the variables of these names. Logs a warning for each torn or damaged checkpoint that it
  // skips. Throws the errors of Restore if the newest intact checkpoint does not fit the graph. Throws DataLossError,
  // with each checkpoint and what is wrong with it, if the state file names checkpoints and none is intact.
  std::string RestoreLatest(Session& session, const std::string& dir, const std::vector<std::string>& only = {})
      COHORT_EXCLUDES(mu_);

  // Replaces the list of kept checkpoints by those that the state file in `dir` names and whose index exists. An
  // earlier process has written them. Later calls of Save delete them as if this Saver had written them. If there is no
  // state file, the list stays as it is.
  void RecoverLastCheckpoints(const std::string& dir) COHORT_EXCLUDES(mu_);
  // Returns the prefixes of the kept checkpoints, oldest first.
  std::vector<std::string> last_checkpoints() const COHORT_EXCLUDES(mu_);
  // Returns the variables, sorted by name. Those of SaverOptions::names are copies that have the other names.
  const std::vector<VariableInfo*>& variables() const { return variables_; }

 private:
  struct Assignment {
    Output fed;
    Node* assign;
  };
  std::string PrefixOf(const std::string& save_path, std::optional<int64_t> global_step) const;
  void CheckFits(const BundleReader& reader) const;
  // Assigns the variables named in `only`, or all if it is empty.
  void Assign(Session& session, const BundleReader& reader, const std::vector<std::string>& only = {}) const;

  // Returns the variables of the options, or copies of them in renamed_.
  std::vector<VariableInfo*> VariablesOf(const Graph& graph);

  const SaverOptions options_;
  std::list<VariableInfo> renamed_;  // of options_.names
  std::vector<VariableInfo*> variables_;
  std::unique_ptr<VariableSnapshots> snapshots_;
  std::vector<Assignment> assignments_;  // one for each variable
  mutable Mutex mu_;
  CheckpointRotation rotation_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
