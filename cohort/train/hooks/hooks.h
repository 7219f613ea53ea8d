// The usual hooks of a MonitoredSession, with the names and the behaviour of TensorFlow's. A hook that needs the global
// step finds it in Begin, and throws FailedPreconditionError there if the graph has none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/checkpoint/saver.h"
#include "cohort/core/export.h"
#include "cohort/ops/variables.h"
#include "cohort/summary/event_writer.h"
#include "cohort/train/hooks/step_timer.h"
#include "cohort/train/scaffold.h"
#include "cohort/train/session/save_attempts.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::train {

// Asks the session to stop at a step. The last step is `last_step`, or the global step at the first session's creation
// plus `num_steps`. Several workers stop by the one global step, so it may pass the last step by the number of workers
// less one. Logs a warning if the global step has stood still for 20 runs.
class COHORT_EXPORT StopAtStepHook final : public SessionRunHook {
 public:
  struct Options {
    std::optional<int64_t> num_steps;
    std::optional<int64_t> last_step;
  };
  // Throws InvalidArgumentError unless exactly one of the two is set.
  explicit StopAtStepHook(const Options& options);
  void Begin(Graph& graph) override;
  void AfterCreateSession(Session& session, Coordinator& coordinator) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  const std::optional<int64_t> num_steps_;
  std::optional<int64_t> last_step_;
  ops::Variable global_step_;
  int64_t seen_step_ = -1;
  int still_ = 0;  // runs since the step has changed
};

// Thrown by NanTensorHook. It is not an Error that a recovery repeats.
class COHORT_EXPORT NanLossDuringTrainingError : public CodedError<Code::kInvalidArgument> {
 public:
  using CodedError::CodedError;
};

// Watches a loss, float32 or float64 []. If it is NaN, throws NanLossDuringTrainingError, or if `fail_on_nan_loss` is
// false logs a warning and asks the session to stop.
class COHORT_EXPORT NanTensorHook final : public SessionRunHook {
 public:
  explicit NanTensorHook(Output loss, bool fail_on_nan_loss = true) : loss_(loss), fail_(fail_on_nan_loss) {}
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  const Output loss_;
  const bool fail_;
};

// Is told of the checkpoints that a CheckpointSaverHook saves.
class COHORT_EXPORT CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  virtual void Begin(Graph& /*graph*/) {}
  virtual void BeforeSave(Session& /*session*/, int64_t /*global_step*/) {}
  // Returns true to ask the session to stop.
  virtual bool AfterSave(Session& /*session*/, int64_t /*global_step*/) { return false; }
  virtual void End(Session& /*session*/, int64_t /*global_step*/) {}
};

// Saves checkpoints: when the session is created, then as often as `every` says, and at the end if the last step has
// none.
class COHORT_EXPORT CheckpointSaverHook final : public SessionRunHook {
 public:
  struct Options {
    std::string checkpoint_dir;
    Every every;
    std::string checkpoint_basename = "model.ckpt";
    Saver* saver = nullptr;              // not owned; null: that of the scaffold
    std::shared_ptr<Scaffold> scaffold;  // null, and no saver: Begin makes a Saver for all variables
    std::vector<std::shared_ptr<CheckpointSaverListener>> listeners;
    bool save_graph_def = true;  // write graph.pbtxt when the first session is created
    // The file that gets the graph and the events of checkpoints. Null: a new one in checkpoint_dir.
    std::shared_ptr<EventWriter> summary_writer;
    // A checkpoint that cannot be written, because the disk is full, is a warning, and the next one is tried. So many
    // in a row end the training; those of one second count once. The checkpoint of the end must succeed.
    int max_save_failures = 5;
  };
  // Throws InvalidArgumentError if checkpoint_dir is "" or max_save_failures is less than 1, and what StepTimer throws.
  explicit CheckpointSaverHook(Options options);
  void Begin(Graph& graph) override;
  void AfterCreateSession(Session& session, Coordinator& coordinator) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  void End(Session& session) override;

 private:
  Saver& saver() const;
  // Returns true if a listener asks to stop. If `must` is false, a failure is treated as max_save_failures says.
  bool Save(Session& session, int64_t step, bool must);

  Options options_;
  const std::string path_;
  StepTimer timer_;
  ops::Variable global_step_;
  std::unique_ptr<Saver> own_saver_;
  bool wrote_graph_ = false;
  SaveAttempts attempts_;
  bool saved_ = false;  // whether the latest attempt has succeeded
};

// Writes a fetched summary to an event file: of the first run, and then as often as `every` says.
class COHORT_EXPORT SummarySaverHook final : public SessionRunHook {
 public:
  struct Options {
    Every every;
    std::string output_dir;                       // needed if there is no summary_writer
    std::shared_ptr<EventWriter> summary_writer;  // null: a new one in output_dir
    Output summary_op;                            // string []; not valid: that of the scaffold
    std::shared_ptr<Scaffold> scaffold;
  };
  // Throws InvalidArgumentError if there is neither a folder nor a writer, or neither an op nor a scaffold, and what
  // StepTimer throws.
  explicit SummarySaverHook(Options options);
  void Begin(Graph& graph) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  void End(Session& session) override;

 private:
  Output summary() const;

  Options options_;
  StepTimer timer_;
  ops::Variable global_step_;
  bool asked_ = false;  // this run fetches the summary
  int64_t next_step_ = 0;
  bool first_ = true;
};

// Writes and logs how many steps are done in a second: "global_step/sec: 123.4". The first trigger only starts the
// clock. Logs a warning if the global step has stood still for 20 triggers.
class COHORT_EXPORT StepCounterHook final : public SessionRunHook {
 public:
  struct Options {
    Every every;                                  // neither is set: 100 steps
    std::string output_dir;                       // "" and no summary_writer: only the log
    std::shared_ptr<EventWriter> summary_writer;  // null: a new one in output_dir
  };
  explicit StepCounterHook(Options options = {});
  void Begin(Graph& graph) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  void End(Session& session) override;

 private:
  Options options_;
  StepTimer timer_;
  ops::Variable global_step_;
  int64_t seen_step_ = -1;
  int still_ = 0;
};

// Logs values: "loss = 0.5, step = 3 (0.123 sec)". The first run logs, and then as often as `every` says, where a step
// is a run of this session.
class COHORT_EXPORT LoggingTensorHook final : public SessionRunHook {
 public:
  using Values = std::vector<std::pair<std::string, Output>>;  // in the order of the line
  using Formatter = std::function<std::string(const std::vector<std::pair<std::string, Tensor>>& values)>;
  struct Options {
    Every every;
    bool at_end = false;  // also when the session ends; then `every` may be left out
    Formatter formatter;  // null: the line above
  };
  LoggingTensorHook(Values tensors, Options options);
  // The labels are the values' names. The line has them in the given order.
  LoggingTensorHook(const std::vector<Output>& tensors, Options options);
  void Begin(Graph& graph) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;
  void AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  void End(Session& session) override;

 private:
  void Log(const RunResults& results);
  std::vector<Output> Fetches() const;

  const Values tensors_;
  Options options_;
  std::optional<StepTimer> timer_;  // nullopt: only at the end
  int64_t runs_ = 0;
  bool asked_ = false;
};

// Feeds what a function returns to each run.
class COHORT_EXPORT FeedFnHook final : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<FeedList()> feed_fn) : feed_fn_(std::move(feed_fn)) {}
  SessionRunArgs BeforeRun(SessionRunContext& context) override;

 private:
  const std::function<FeedList()> feed_fn_;
};

// Delays the first run until the global step, which other workers change, has reached a value. Ends the wait if the
// session is asked to stop.
class COHORT_EXPORT GlobalStepWaiterHook final : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step) : wait_until_step_(wait_until_step) {}
  void Begin(Graph& graph) override;
  void AfterCreateSession(Session& session, Coordinator& coordinator) override;
  SessionRunArgs BeforeRun(SessionRunContext& context) override;

 private:
  const int64_t wait_until_step_;
  ops::Variable global_step_;
  Coordinator* coordinator_ = nullptr;
  bool over_ = false;
};

// Runs ops when the session ends, and keeps their values.
class COHORT_EXPORT FinalOpsHook final : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Output> final_ops, FeedList feeds = {})
      : final_ops_(std::move(final_ops)), feeds_(std::move(feeds)) {}
  void End(Session& session) override;
  // The values, in the order of the ops. Empty until the session has ended.
  const RunResults& final_ops_values() const { return values_; }

 private:
  const std::vector<Output> final_ops_;
  const FeedList feeds_;
  RunResults values_;
};

}  // namespace cohort::train
