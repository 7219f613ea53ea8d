// Supervisor: does for a training program what is needed before and beside its loop. It initializes or restores the
// model, and saves checkpoints and summaries while the program runs. In a cluster one worker, the chief, does this for
// all. It follows TensorFlow's tf.train.Supervisor.
//
//   train::Supervisor supervisor(graph, {.is_chief = task == 0, .logdir = "checkpoint/", .server = &server});
//   train::ManagedSession session = supervisor.managed_session(server.Target());
//   while (!supervisor.should_stop() && step < max_steps) { session->Run(...); }
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/checkpoint/saver.h"
#include "cohort/cluster/server.h"
#include "cohort/core/export.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/summary/event_writer.h"
#include "cohort/train/coordinator.h"
#include "cohort/train/scaffold.h"
#include "cohort/train/session/save_attempts.h"
#include "cohort/train/session/training_marker.h"
#include "cohort/train/session_manager.h"

namespace cohort::train {

// The options of a Supervisor, with TensorFlow's names and defaults.
struct COHORT_EXPORT SupervisorOptions {
  bool is_chief = true;
  std::string logdir;       // the chief's folder for checkpoints, events and graph.pbtxt; "": nothing is written
  Node* init_op = nullptr;  // default: the initializers of all variables that are not local
  FeedList init_feed;
  std::function<void(Session&)> init_fn;  // called after init_op; not called if a checkpoint was restored
  Node* local_init_op = nullptr;          // default: the initializers of the local variables
  // Its value is a string vector: the names of those variables that have no value yet. Default: an op that checks all
  // variables, also local ones.
  Output ready_op;
  Saver* saver = nullptr;     // not owned; default: a Saver for all variables that are not local
  ops::Variable global_step;  // default: the graph's global step, if it has one
  // Default: an op that merges all summaries of the graph. Set it to Output() for no summaries. If the op needs a fed
  // value, the supervisor logs a warning and does not run the op. Then fetch the op in the program, and pass the
  // fetched value to SummaryComputed.
  std::optional<Output> summary_op;
  std::chrono::milliseconds save_model_interval = std::chrono::minutes(10);  // 0: no checkpoints
  // The interval of summaries and of the step counter; 0: no summaries and no step counter.
  std::chrono::milliseconds save_summaries_interval = std::chrono::minutes(2);
  // The longest pause of a worker between two checks whether the model is ready. The pauses begin with 10 ms and double
  // up to this limit. TensorFlow's default is 30 s, because it makes a new session for each check. Here a check is one
  // step of an open session.
  std::chrono::milliseconds recovery_wait{1000};
  std::chrono::milliseconds max_wait = std::chrono::hours(2);      // a worker's longest wait for the chief
  std::chrono::milliseconds stop_grace = std::chrono::minutes(2);  // longest wait until the services have ended
  std::string checkpoint_basename = "model.ckpt";
  // A checkpoint that cannot be written, because the disk is full, is a warning, and the next one is tried. So many in
  // a row end the training; those of one second count once. At least 1.
  int max_save_failures = 5;
  // false: start from the initial values even if logdir has checkpoints. The old checkpoints stay as they are. New
  // checkpoints are added, and the state file then lists only the new checkpoints.
  bool restore = true;
  // true: if a parameter server was started again alone, restore only its variables. The others go on with the values
  // that they have, which are of a later step. false: all variables go back to the newest checkpoint together.
  bool allow_mixed_steps = false;
  // A chief waits so long for another session that leads the same training, such as that of a process that was just
  // killed. It should be longer than the servers' silence_limit.
  std::chrono::milliseconds chief_wait = std::chrono::seconds(30);
  // This process's server, or null. Not owned; it must outlive the supervisor. After a session without errors the chief
  // calls the server's AnnounceDone. A worker that waits for the chief asks the server whether the chief is lost.
  Server* server = nullptr;
};

class ManagedSession;
class TrainingRecord;

// Supervises one program. The program owns it. One thread calls managed_session and Stop, and ends the ManagedSession.
// The other functions are thread-safe, except that no thread may call SummaryComputed while a ManagedSession is made or
// ended. The ManagedSession must end before the supervisor.
class COHORT_EXPORT Supervisor {
 public:
  // Adds the nodes that the supervisor needs to the graph, and finalizes the graph. The graph must outlive the
  // supervisor. Throws InvalidArgumentError for a negative interval. Throws InvalidArgumentError if this worker is not
  // the chief and has variables without a device, because workers could not share them. Throws what Scaffold::Finalize
  // throws.
  Supervisor(Graph& graph, const SupervisorOptions& options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Returns a session whose first step can run. There can be only one session at a time. Forgets earlier calls of
  // RequestStop.
  // The chief goes on with the values of the variables if they are of this training, because parameter servers outlived
  // an earlier chief. Otherwise it restores the newest intact checkpoint of logdir, or runs init_op if there is none
  // (see SessionManager::PrepareSession). If logdir is not "",
  // it then starts threads, the services. They save a checkpoint at once and every save_model_interval; they skip a
  // checkpoint if the global step is still that of the last one. They write summaries and `global_step/sec` every
  // save_summaries_interval. Other workers wait until the chief has prepared the model. Throws what Session and Saver
  // throw, such as DataLossError if the state file names checkpoints and none can be used. Throws CancelledError if
  // RequestStop is called, or a signal comes, during a wait for the chief or for a task that is not up; so do the
  // steps of the session. For the chief, throws also FailedPreconditionError if a variable has no value after the
  // initialization or restore. For another worker, throws also
  // - DeadlineExceededError, with the names of variables that have no value, if the wait takes longer than max_wait;
  // - UnavailableError if options.server has lost the chief for longer than its orphan_timeout;
  // - InvalidArgumentError, with both values and both tasks, if its trained variables, or the numbers of a
  //   SyncReplicasOptimizer, are not those of the chief.
  // Only one session at a time leads a training on a cluster. The chief throws AlreadyExistsError, with both tasks, if
  // another one does so for longer than chief_wait. It throws InvalidArgumentError, with both values, if the parameter
  // servers hold this training as an earlier chief has described it, and it differs.
  ManagedSession managed_session(const std::string& target = "", const SessionConfig& config = {});

  // Returns true after RequestStop, after a service has failed, and after SIGTERM or SIGINT (see StopSignal).
  bool should_stop() const { return coordinator_.should_stop(); }
  // Asks the services to end, and makes should_stop() return true so that the program's loop ends. Does not wait.
  // ManagedSession::Close throws the first error that was given here or that a service had. An OutOfRangeError means a
  // clean end and is not thrown.
  void RequestStop(std::exception_ptr error = nullptr) { coordinator_.RequestStop(std::move(error)); }
  // Calls RequestStop, then waits up to stop_grace until the services have ended. If they have not, logs a warning.
  void Stop();

  // Writes a fetched summary (string scalar) to the chief's event file. Does nothing in other workers, without a
  // logdir, and if there is no ManagedSession.
  void SummaryComputed(const Tensor& summary, int64_t step);
  // Returns null if this process is not the chief, if logdir is "", or if no saver was given and all variables of the
  // graph are local.
  Saver* saver() const { return scaffold_.saver(); }
  bool is_chief() const { return options_.is_chief; }
  // Returns the prefix of the last checkpoint that this supervisor has restored or saved. Returns "" if there is none.
  std::string last_checkpoint() const COHORT_EXCLUDES(mu_);

 private:
  friend class ManagedSession;
  bool writes() const { return options_.is_chief && !options_.logdir.empty(); }
  std::unique_ptr<Session> PrepareSession(const std::string& target, const SessionConfig& config);
  void StartServices(Session& session);
  void SaveModel(Session& session) COHORT_EXCLUDES(mu_);
  void RecordSummary(Session& session);
  void CountSteps(Session& session);
  // Ends a managed session. `clean`: the program was not left by an exception.
  void Finish(std::unique_ptr<Session> session, bool clean);
  void FinishWriting(Session& session, bool clean);

  Graph& graph_;
  SupervisorOptions options_;
  Coordinator coordinator_;
  std::atomic<bool> stopped_by_signal_ = false;
  std::optional<StopSignal> stop_signal_;  // while there is a session
  Scaffold scaffold_;
  TrainingMarker marker_;                   // not valid if no variable has a device
  std::unique_ptr<TrainingRecord> record_;  // null if the marker is not valid
  std::unique_ptr<EventWriter> writer_;
  mutable Mutex mu_;
  std::string last_checkpoint_ COHORT_GUARDED_BY(mu_);
  std::optional<int64_t> last_saved_step_ COHORT_GUARDED_BY(mu_);
  SaveAttempts save_attempts_;  // used only by the checkpoints' thread
  // Used only by the step counter's thread:
  std::chrono::steady_clock::time_point counted_at_;
  int64_t counted_step_ = 0;
  int rates_logged_ = 0;
  bool counting_ = false;
};

// A session under a supervisor; like the block of a `with` statement in Python. The caller owns it. Its end stops the
// services, waits for them, and closes the session. If they do not end within stop_grace, it cancels their steps. If
// the block is left normally and no error was reported, the chief does more: before it closes the session, it saves a
// last checkpoint (TensorFlow saves none here). It saves none if logdir is "" or save_model_interval is 0. After it has
// closed the session, it calls AnnounceDone of options.server, unless SIGTERM has ended the loop: the training is not
// done then. Call Close at the end of the block: it throws the error of a service, or the error given to RequestStop.
// The destructor does the same as Close, but only logs such an error. If the block is left by an exception, that
// exception continues, nothing is saved, and other errors are logged.
class [[nodiscard]] COHORT_EXPORT ManagedSession {
 public:
  ~ManagedSession();
  ManagedSession(const ManagedSession&) = delete;
  ManagedSession& operator=(const ManagedSession&) = delete;

  Session& operator*() const { return *session_; }
  Session* operator->() const { return session_.get(); }
  Session& session() const { return *session_; }
  // Ends the session as described above. A second call does nothing. Throws the first error of a service or of
  // RequestStop.
  void Close();

 private:
  friend class Supervisor;
  ManagedSession(Supervisor& supervisor, std::unique_ptr<Session> session);
  Supervisor& supervisor_;
  std::unique_ptr<Session> session_;
  const int exceptions_before_;
};

}  // namespace cohort::train
