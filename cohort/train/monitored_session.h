// MonitoredSession: a session for a training loop. It prepares the model, calls hooks around each run, and begins again
// with a new session if a task was lost. It follows TensorFlow's tf.train.MonitoredTrainingSession.
//
//   train::MonitoredSession session = train::MonitoredTrainingSession(
//       graph, {.master = server.Target(), .is_chief = task == 0, .checkpoint_dir = "model/",
//               .hooks = {std::make_shared<train::StopAtStepHook>(train::LastStep{1000})}});
//   while (!session.should_stop()) session.Run({}, {}, {train_op});
//   session.Close();
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/server.h"
#include "cohort/core/export.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"
#include "cohort/train/coordinator.h"
#include "cohort/train/scaffold.h"
#include "cohort/train/session/training_marker.h"
#include "cohort/train/session_manager.h"
#include "cohort/train/session_run_hook.h"

namespace cohort::train {

class TrainingRecord;

// How a MonitoredSession opens its sessions.
struct COHORT_EXPORT SessionCreatorOptions {
  std::shared_ptr<Scaffold> scaffold;  // null: a Scaffold with the defaults
  std::string master;                  // the target of the session; "": devices of this process
  SessionConfig config;
  std::string checkpoint_dir;      // the chief restores the newest checkpoint of this folder; "": nothing is restored
  bool allow_mixed_steps = false;  // see PrepareOptions
  // The longest wait of a worker for the chief, and of a recovery for tasks that are lost.
  std::chrono::milliseconds max_wait = std::chrono::hours(2);
  // A chief waits so long for another session that leads the same training, such as that of a process that was just
  // killed. It should be longer than the servers' silence_limit.
  std::chrono::milliseconds chief_wait = std::chrono::seconds(30);
  // This process's server, or null. Not owned; it must outlive the session. A worker that waits asks it whether the
  // chief is lost. After a session without errors the chief calls its AnnounceDone.
  Server* server = nullptr;
};

// Opens the sessions of a MonitoredSession, which owns it. ChiefSessionCreator and WorkerSessionCreator are the two
// kinds. Used by one thread at a time.
class COHORT_EXPORT SessionCreator {
 public:
  // Adds two things to `graph`, if there is a master, beside the global step: a TrainingMarker, and the record
  // (TrainingRecord), which says which session is the chief's, and what it trains. Requires: the graph is not
  // finalized.
  SessionCreator(Graph& graph, SessionCreatorOptions options);
  virtual ~SessionCreator();

  // Returns a session whose first step can run. Called again after each recovery. Throws InvalidArgumentError if this
  // process and the chief do not train the same model in the same way. Requires: the scaffold is finalized.
  virtual std::unique_ptr<Session> CreateSession(const Graph& graph, Coordinator& coordinator) = 0;
  virtual bool is_chief() const = 0;

  Scaffold& scaffold() const { return *options_.scaffold; }
  const SessionCreatorOptions& options() const { return options_; }
  // Returns the marker that the latest CreateSession has seen; 0 if there is none. It changes whenever the chief
  // restores or initializes the variables.
  int64_t state() const { return state_; }
  // Sets SessionConfig::interrupted of later sessions. The function that the options give is asked first.
  void SetInterrupted(const std::function<Status()>& interrupted);
  // Tells the creator that a step has ended, before which the global step was `before`. A later CreateSession can then
  // say how many steps are lost.
  void NoteStep(int64_t before) { seen_step_ = before + 1; }

 protected:
  SessionManagerOptions Waits();
  // Remembers the marker and the restored step of a new session, and returns the session.
  std::unique_ptr<Session> Keep(PreparedSession prepared);
  int64_t seen_step() const { return seen_step_; }  // -1: none

 private:
  SessionCreatorOptions options_;
  TrainingMarker marker_;                   // not valid without a master, and if the graph has no variables
  std::unique_ptr<TrainingRecord> record_;  // null if there is no marker
  int64_t state_ = 0;
  int64_t seen_step_ = -1;
};

// For the process that initializes or restores the model, see SessionManager::PrepareSession. It never replaces values
// that belong to the training that it continues. Only one session at a time leads a training: CreateSession throws
// AlreadyExistsError, with both tasks, if another one does so for longer than chief_wait.
class COHORT_EXPORT ChiefSessionCreator final : public SessionCreator {
 public:
  using SessionCreator::SessionCreator;
  std::unique_ptr<Session> CreateSession(const Graph& graph, Coordinator& coordinator) override;
  bool is_chief() const override { return true; }
};

// For the other workers: waits until the chief has given every variable a value.
class COHORT_EXPORT WorkerSessionCreator final : public SessionCreator {
 public:
  using SessionCreator::SessionCreator;
  std::unique_ptr<Session> CreateSession(const Graph& graph, Coordinator& coordinator) override;
  bool is_chief() const override { return false; }
};

struct COHORT_EXPORT MonitoredSessionOptions {
  // Their functions are called in this order. They may be used by one session only.
  std::vector<std::shared_ptr<SessionRunHook>> hooks;
  // false: an AbortedError or UnavailableError ends the session (TensorFlow's SingularMonitoredSession).
  bool recover = true;
  // true: SIGTERM or SIGINT ends the loop in good order, see StopSignal. For sessions that train; an evaluation of a
  // part of the data would be wrong.
  bool stops_on_sigterm = false;
  // Whether this process writes checkpoints or summaries; the scaffold then has a saver and a summary op.
  bool writes = false;
  std::chrono::milliseconds stop_grace = std::chrono::minutes(2);  // longest wait for the coordinator's threads
};

// The session of one training loop. The program owns it. One thread uses it.
class [[nodiscard]] COHORT_EXPORT MonitoredSession {
 public:
  // Calls Begin of all hooks, finalizes the scaffold and with it the graph, creates the first session, and calls
  // AfterCreateSession of all hooks. Throws what these throw. Throws OutOfRangeError if this is not the chief and its
  // server says that training is done, and CancelledError if the program is told to stop while it waits for a task.
  MonitoredSession(Graph& graph, std::unique_ptr<SessionCreator> creator, MonitoredSessionOptions options = {});
  // Calls Close, unless the block is left by an exception: then it ends the session without calling the hooks' End. An
  // error of Close is only logged.
  ~MonitoredSession();
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  // Runs a step with its hooks, and returns what `fetches` ask for. If a task is lost (AbortedError, UnavailableError),
  // makes a new session and repeats the step: BeforeRun of all hooks is called again, AfterRun only after the step has
  // succeeded. An update that the first try has made on a task that lived is not made again (RunOptions::closure),
  // unless the chief has restored or initialized the variables meanwhile. Throws
  // - FailedPreconditionError if should_stop() is true, or after Close;
  // - InvalidArgumentError if two hooks, or a hook and the caller, feed the same value;
  // - CancelledError if the program is told to stop (SIGTERM, Ctrl-C, RequestStop) while the step waits for a task;
  // - the first error that a thread of the coordinator had;
  // - what Session::Run throws, such as OutOfRangeError at the end of the data, and what hooks throw.
  RunResults Run(const FeedList& feeds, const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                 const RunOptions& options = {});
  RunResults Run(const std::vector<Output>& fetches) { return Run({}, fetches); }
  Tensor Run(Output fetch) { return Run({}, {fetch}).front(); }
  void Run(Node* target) { Run({}, {}, {target}); }

  // Runs a function that takes several steps with the session itself, and one step with hooks. It is repeated from its
  // beginning if a task is lost, and then makes its updates once more. Returns what `step_fn` returns.
  class StepContext {
   public:
    explicit StepContext(MonitoredSession& monitored) : monitored_(monitored) {}
    // The session itself. It is another one after a RunWithHooks in which a task was lost.
    Session& session() const { return *monitored_.session_; }
    RunResults RunWithHooks(const FeedList& feeds, const std::vector<Output>& fetches,
                            const std::vector<Node*>& targets = {}, const RunOptions& options = {});
    void RequestStop() { monitored_.coordinator_.RequestStop(); }

   private:
    MonitoredSession& monitored_;
  };
  RunResults RunStepFn(const std::function<RunResults(StepContext&)>& step_fn);

  // Calls `body` until should_stop() is true or the data has ended (OutOfRangeError), and then Close. Throws other
  // errors of `body`, and what Close throws.
  void RunUntilStop(const std::function<void(MonitoredSession&)>& body);

  // Returns true after a hook or a thread of the coordinator has asked to stop, after Close, and after SIGTERM or
  // SIGINT (see StopSignal). Throws the first error that a thread of the coordinator had.
  bool should_stop();
  // Calls End of all hooks, stops the coordinator's threads, and closes the session. The chief then calls AnnounceDone
  // of its server, unless SIGTERM has ended the loop. Throws what a hook or a thread of the coordinator throws; the
  // session is closed nevertheless. A second call does nothing.
  void Close();

  const Graph& graph() const { return graph_; }
  Coordinator& coordinator() { return coordinator_; }

 private:
  // Creates a session, and calls AfterCreateSession. Repeats it while tasks are lost, up to the creator's max_wait.
  void Create();
  void CreateOnce();
  // Ends the loop because of SIGTERM, unless it ends already.
  void StopBySignal();
  // Ends the session, and the loops of the coordinator, which may use it. A request to stop, and its error, stay.
  void DropSession();
  RunResults RunOnce(const RunRequest& request);
  // Tells the creator of the global step, if a hook or the caller has fetched it.
  void NoteStep(const RunRequest& request, const RunResults& results);
  // Calls `work` until no task is lost during it.
  RunResults Recovering(const std::function<RunResults()>& work);
  // Calls AfterRun of all hooks. The values of hook i are those from fetch_begin[i] up to fetch_begin[i + 1].
  void CallAfterRun(SessionRunContext& context, const RunRequest& request, const RunResults& results,
                    const std::vector<size_t>& fetch_begin);
  void Finish(bool clean);

  const Graph& graph_;
  std::unique_ptr<SessionCreator> creator_;
  MonitoredSessionOptions options_;
  Coordinator coordinator_;
  std::unique_ptr<Session> session_;  // null while none is open
  const uint64_t id_;                 // of this object, for RunOptions::closure
  int64_t calls_ = 0;                 // of Run
  bool closed_ = false;
  int exceptions_before_ = 0;
  // SIGTERM must not end the step that is running, nor come between should_stop and Run. So it only sets signalled_,
  // which should_stop looks at. But it ends the waits of Create.
  std::atomic<bool> signalled_ = false;
  std::atomic<bool> creating_ = false;
  std::atomic<bool> stopped_by_signal_ = false;
  std::optional<StopSignal> stop_signal_;
};

// The arguments of MonitoredTrainingSession, with TensorFlow's names and defaults.
struct COHORT_EXPORT MonitoredTrainingSessionOptions {
  std::string master;  // "", Server::Target(), or "grpc://host:port"
  bool is_chief = true;
  std::string checkpoint_dir;  // "": no checkpoints
  std::shared_ptr<Scaffold> scaffold;
  std::vector<std::shared_ptr<SessionRunHook>> hooks;
  std::vector<std::shared_ptr<SessionRunHook>> chief_only_hooks;
  // At most one of the two is set to more than 0. Neither is set: every 10 minutes. 0: no checkpoints.
  std::optional<std::chrono::milliseconds> save_checkpoint_interval;
  std::optional<int64_t> save_checkpoint_steps;
  // At most one of the two is set to more than 0. Neither is set: every 100 steps. 0: no summaries.
  std::optional<int64_t> save_summaries_steps;
  std::optional<std::chrono::milliseconds> save_summaries_interval;
  SessionConfig config;
  std::chrono::milliseconds stop_grace = std::chrono::minutes(2);
  int64_t log_step_count_steps = 100;  // steps between two values of global_step/sec; 0: none
  std::chrono::milliseconds max_wait = std::chrono::hours(2);
  std::chrono::milliseconds chief_wait = std::chrono::seconds(30);  // see SessionCreatorOptions
  std::string summary_dir;                                          // "": checkpoint_dir
  bool save_graph_def = true;
  // Whether this process saves the positions of its iterators beside the checkpoints, and restores them in each session
  // (CheckpointInputPipelineHook). False: the input begins at its start in each session, as in TensorFlow.
  bool save_input_positions = true;
  Server* server = nullptr;  // see SessionCreatorOptions
};

// Returns a MonitoredSession for a chief or for another worker. A chief with a folder gets these hooks, in this order:
// chief_only_hooks, StepCounterHook, SummarySaverHook, CheckpointSaverHook, CheckpointInputPipelineHook, `hooks`.
// Another worker gets CheckpointInputPipelineHook and `hooks`. A process gets a CheckpointInputPipelineHook if it has a
// checkpoint_dir, if the graph has iterators (data::MakeGraphIterator), and if `hooks` has none; a worker also needs
// `server`, which knows its task. The chief saves its own iterators and those on parameter servers.
// Throws InvalidArgumentError if both options of a pair are set to more than 0, FailedPreconditionError if a session
// was made of the graph before (another try needs a new graph), and what MonitoredSession's constructor throws.
COHORT_EXPORT MonitoredSession MonitoredTrainingSession(Graph& graph, const MonitoredTrainingSessionOptions& options);

}  // namespace cohort::train
