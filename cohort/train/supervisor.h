// Supervisor: what a training program needs around its loop - initial values or a checkpoint, checkpoints and
// summaries while it runs - in a cluster where one worker (the chief) does this for all. After TensorFlow's
// tf.train.Supervisor.
//
//   train::Supervisor supervisor(graph, {.is_chief = task == 0, .logdir = "checkpoint/", .server = &server});
//   train::ManagedSession session = supervisor.managed_session(server.Target());
//   while (!supervisor.should_stop() && step < max_steps) { session->Run(...); }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/checkpoint/saver.h"
#include "cohort/cluster/server.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/summary/event_writer.h"
#include "cohort/train/coordinator.h"
#include "cohort/train/scaffold.h"
#include "cohort/train/session_manager.h"

namespace cohort::train {

struct SupervisorOptions {
  bool is_chief = true;
  std::string logdir;       // of the chief: checkpoints, events, graph.pbtxt; "": nothing is written
  Node* init_op = nullptr;  // default: the initializers of all variables that are not local
  FeedList init_feed;
  std::function<void(Session&)> init_fn;  // called after init_op; not called if a checkpoint was restored
  Node* local_init_op = nullptr;          // default: those of the local ones
  Output ready_op;                        // string [n], what is missing yet; default: variables without a value
  Saver* saver = nullptr;                 // not owned; default: one for all variables, as Saver's options say
  ops::Variable global_step;              // default: the graph's, where it has one
  // Default: all of the graph's summaries in one. Output(): none. One that needs a feed is not run here (a
  // warning says so): fetch it in the program and give it to SummaryComputed.
  std::optional<Output> summary_op;
  std::chrono::milliseconds save_model_interval = std::chrono::minutes(10);  // 0: no checkpoints
  // Also of the step counter; 0: none.
  std::chrono::milliseconds save_summaries_interval = std::chrono::minutes(2);
  // Longest pause between two looks whether the chief is ready. TensorFlow's default is 30 s, because it
  // makes a new session for each look; here a look is one step of an open session, so that waiting begins
  // with 10 ms and doubles.
  std::chrono::milliseconds recovery_wait{1000};
  std::chrono::milliseconds max_wait = std::chrono::hours(2);
  std::chrono::milliseconds stop_grace = std::chrono::minutes(2);
  std::string checkpoint_basename = "model.ckpt";
  // false: start from the initial values even where logdir has checkpoints. They stay as they are; new ones
  // join them, and the state file then lists the new ones only.
  bool restore = true;
  // Not owned. The chief calls its AnnounceDone at the end. While a worker waits for the chief, it watches through this
  // server whether the chief is lost.
  Server* server = nullptr;
};

class ManagedSession;

// One a program. managed_session, Stop and the end of a ManagedSession belong to one thread; the rest is
// thread-safe.
class Supervisor {
 public:
  // Adds the nodes it needs and finalizes the graph. Throws InvalidArgumentError for a worker that is not
  // chief and has variables without a device, which it could not share.
  Supervisor(Graph& graph, const SupervisorOptions& options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Chief: restores the newest intact checkpoint of logdir, else runs init_op; then starts the services: a
  // checkpoint at once and every save_model_interval, summaries and `global_step/sec` every save_summaries_interval.
  // Others wait until the chief is done with it. One session at a time. Throws what the session throws
  // (UnavailableError, ... name the task); DeadlineExceededError with the names of what is missing after
  // max_wait; UnavailableError if options.server has lost the chief for its orphan_timeout;
  // FailedPreconditionError where the chief's initialization leaves something out; CancelledError when RequestStop came
  // while it waited.
  ManagedSession managed_session(const std::string& target = "", const SessionConfig& config = {});

  // True after RequestStop, and when a service has failed.
  bool should_stop() const { return coordinator_.should_stop(); }
  // Ends the services and, through should_stop, the program's loop. `error` is thrown at the end of the
  // managed session, unless it is an OutOfRangeError, which is a clean end.
  void RequestStop(std::exception_ptr error = nullptr) { coordinator_.RequestStop(std::move(error)); }
  // RequestStop, then waits up to stop_grace for the services.
  void Stop();

  // Writes a fetched summary (string scalar) to the chief's event file; nothing elsewhere.
  void SummaryComputed(const Tensor& summary, int64_t step);
  // Null where nothing is saved.
  Saver* saver() const { return scaffold_.saver(); }
  bool is_chief() const { return options_.is_chief; }
  // "" until one was restored or saved by this supervisor.
  std::string last_checkpoint() const COHORT_EXCLUDES(mu_);

 private:
  friend class ManagedSession;
  bool writes() const { return options_.is_chief && !options_.logdir.empty(); }
  std::unique_ptr<Session> PrepareSession(const std::string& target, const SessionConfig& config);
  void StartServices(Session& session);
  void SaveModel(Session& session) COHORT_EXCLUDES(mu_);
  void RecordSummary(Session& session);
  void CountSteps(Session& session);
  // The end of a managed session. `clean`: the program was not left by an exception.
  void Finish(std::unique_ptr<Session> session, bool clean);
  void FinishWriting(Session& session, bool clean);

  Graph& graph_;
  SupervisorOptions options_;
  Coordinator coordinator_;
  Scaffold scaffold_;
  std::unique_ptr<EventWriter> writer_;
  mutable Mutex mu_;
  std::string last_checkpoint_ COHORT_GUARDED_BY(mu_);
  std::optional<int64_t> last_saved_step_ COHORT_GUARDED_BY(mu_);
  // Of the step counter's thread alone.
  std::chrono::steady_clock::time_point counted_at_;
  int64_t counted_step_ = 0;
  int rates_logged_ = 0;
  bool counting_ = false;
};

// A session under a supervisor, as the block of a `with` statement. At its end the services stop and the session
// closes. If the block is left normally, the chief first saves a last checkpoint (TensorFlow does not), and then says
// through options.server that training is done. Call Close at the end of the block: it throws the error of a service,
// or the one given to RequestStop. The destructor does the same as Close, but only logs such an error. If the block is
// left by an exception, that exception goes on, nothing is saved, and other errors are logged.
class [[nodiscard]] ManagedSession {
 public:
  ~ManagedSession();
  ManagedSession(const ManagedSession&) = delete;
  ManagedSession& operator=(const ManagedSession&) = delete;

  Session& operator*() const { return *session_; }
  Session* operator->() const { return session_.get(); }
  Session& session() const { return *session_; }
  // Ends the block as described above; there is no session afterwards. Throws the first error of a service, or the one
  // given to RequestStop.
  void Close();

 private:
  friend class Supervisor;
  ManagedSession(Supervisor& supervisor, std::unique_ptr<Session> session);
  Supervisor& supervisor_;
  std::unique_ptr<Session> session_;
  const int exceptions_before_;
};

}  // namespace cohort::train
