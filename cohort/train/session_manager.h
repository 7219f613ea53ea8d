// SessionManager: opens a session of a training program and brings it to the point at which its first step can run. The
// chief restores or initializes the model; the other workers wait for the chief. It follows TensorFlow's
// tf.train.SessionManager.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"
#include "cohort/train/coordinator.h"
#include "cohort/train/scaffold.h"

namespace cohort::train {

// The options of the waits of a SessionManager.
struct COHORT_EXPORT SessionManagerOptions {
  // The longest pause between two looks whether the chief is ready, in seconds. TensorFlow's default is 30 s, because
  // it makes a new session for each look; here a look is one step of an open session, so the pauses begin with 10 ms
  // and double.
  double recovery_wait_secs = 1;
  double max_wait_secs = 7200;  // for the chief, or for a checkpoint
  // Called while a worker waits for the chief. It must throw if the chief is lost. Null: not called.
  std::function<void()> check_chief;
};

// The checkpoints that PrepareSession and RecoverSession may restore.
struct COHORT_EXPORT PrepareOptions {
  std::string checkpoint_dir;        // "": nothing is restored
  bool restore = true;               // false: start from the initial values and leave the checkpoints as they are
  bool wait_for_checkpoint = false;  // wait until checkpoint_dir has one
};

// A session that is ready for its first step.
struct COHORT_EXPORT PreparedSession {
  std::unique_ptr<Session> session;
  std::string restored;  // prefix of the restored checkpoint; "" if the model was initialized
};

// Used by one thread. The caller owns it. `graph`, `scaffold` and `coordinator` must outlive it.
class COHORT_EXPORT SessionManager {
 public:
  // Requires: the scaffold is finalized before another function is called.
  SessionManager(const Graph& graph, const Scaffold& scaffold, Coordinator& coordinator,
                 SessionManagerOptions options = {});

  // For the chief. Opens a session. Restores the newest intact checkpoint, or runs init_op and init_fn if there is
  // none. Then runs local_init_op. Throws what the session and the saver throw; FailedPreconditionError, with the
  // names, if a variable then has no value; DeadlineExceededError if no checkpoint came in time; CancelledError if the
  // coordinator stops the wait.
  PreparedSession PrepareSession(const std::string& target, const SessionConfig& config,
                                 const PrepareOptions& options) const;
  // For a session that must not initialize the model. Works as PrepareSession, but returns no session if there is no
  // checkpoint.
  PreparedSession RecoverSession(const std::string& target, const SessionConfig& config,
                                 const PrepareOptions& options) const;
  // For the other workers. Opens a session, waits until every variable that is not local has a value, and runs
  // local_init_op. Throws DeadlineExceededError, with the names of variables without a value, after max_wait_secs.
  // Throws CancelledError if the coordinator stops the wait. Throws what the session throws.
  std::unique_ptr<Session> WaitForSession(const std::string& target, SessionConfig config) const;

 private:
  std::string Restore(Session& session, const PrepareOptions& options) const;
  void RunLocalInit(Session& session, const std::string& what_ran) const;

  const Graph& graph_;
  const Scaffold& scaffold_;
  Coordinator& coordinator_;
  const SessionManagerOptions options_;
};

}  // namespace cohort::train
