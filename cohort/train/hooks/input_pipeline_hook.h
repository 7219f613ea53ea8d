// CheckpointInputPipelineHook: saves where the input of a training is, so that a training that goes on from a
// checkpoint does not see the same examples again.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cohort/checkpoint/iterator_saver.h"
#include "cohort/core/export.h"
#include "cohort/train/clock.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::train {

// Writes the positions of this process's iterators (IteratorSaver) beside each new checkpoint, and restores them when a
// session is created. Without the hook, input begins at its start in each session, as in TensorFlow. The chief and each
// worker have a hook of their own, which MonitoredTrainingSession adds, so that a dead worker cannot block a save. A
// checkpoint may be up to `look_interval` older than the positions beside it. The hook of a chief should come after its
// CheckpointSaverHook; MonitoredTrainingSession puts `hooks` there.
//
// Restores the positions beside the newest checkpoint that has some of this process. A recovery after a lost task is a
// new session, so examples since that checkpoint then come again.
class COHORT_EXPORT CheckpointInputPipelineHook final : public SessionRunHook {
 public:
  struct Options {
    std::string checkpoint_dir;  // the folder of the chief's checkpoints, which this process must see
    std::string task;            // "/job:worker/task:1"; "": the program has only one process
    bool is_chief = true;
    // How often it looks for a new checkpoint, between two runs. 0: after each run.
    std::chrono::milliseconds look_interval{1000};
  };
  // Throws InvalidArgumentError if checkpoint_dir is "" or look_interval is negative.
  explicit CheckpointInputPipelineHook(Options options);
  // Throws InvalidArgumentError if `task` does not name a task. Logs a line if the graph has no iterator to save.
  void Begin(Graph& graph) override;
  void AfterCreateSession(Session& session, Coordinator& coordinator) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  void End(Session& session) override;

 private:
  // Saves the positions if there is a checkpoint beside which they are not saved yet.
  void Look(Session& session);

  const Options options_;
  std::unique_ptr<IteratorSaver> saver_;
  std::string saved_;  // the checkpoint beside which they were saved last
  Clock::time_point last_look_;
};

}  // namespace cohort::train
