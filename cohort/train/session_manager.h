// SessionManager: opens a session of a training program and brings it to the point at which its first step can run. The
// chief restores or initializes the model; the other workers wait for the chief. It follows TensorFlow's
// tf.train.SessionManager.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"
#include "cohort/train/coordinator.h"
#include "cohort/train/scaffold.h"
#include "cohort/train/session/training_marker.h"

namespace cohort::train {

// The options of the waits of a SessionManager.
struct COHORT_EXPORT SessionManagerOptions {
  // The longest pause between two checks whether the model, or a checkpoint, is ready. The pauses begin with 10 ms and
  // double up to this limit. TensorFlow's default is 30 s, because it makes a new session for each check. Here a check
  // is one step of an open session, or a look into a folder.
  std::chrono::milliseconds recovery_wait{1000};
  std::chrono::milliseconds max_wait = std::chrono::hours(2);  // the longest wait for the chief or for a checkpoint
  // WaitForSession calls it before each pause. It must throw if the chief is lost; WaitForSession then throws the same
  // error. Null: not called.
  std::function<void()> check_chief;
  // The marker of the graph. Not owned. Null: the chief never goes on with variables that it finds.
  TrainingMarker* marker = nullptr;
  // PrepareSession calls it after its first look at the variables, before it changes any. `holds_this_training` says
  // whether it will go on with them. It may wait for another chief, after which PrepareSession looks again. Throws what
  // PrepareSession shall throw. Null: not called.
  std::function<void(Session& session, bool holds_this_training)> lead;
  // WaitForSession calls it with its session after each look at the variables. It goes on waiting if this returns
  // false, and throws what this throws. Null: true.
  std::function<bool(Session&)> session_is_ready;
};

// The checkpoints that PrepareSession and RecoverSession may restore.
struct COHORT_EXPORT PrepareOptions {
  std::string checkpoint_dir;        // "": nothing is restored
  bool restore = true;               // false: nothing is restored, and the checkpoints stay as they are
  bool wait_for_checkpoint = false;  // true: wait until checkpoint_dir has a checkpoint (not if `restore` is false)
  // true: if only some variables have lost their values, because their task was started again, restore only these. The
  // variables are then of different steps. All are restored nevertheless if the task of the global step was started
  // again, because the marker lies there. false: restore all.
  bool allow_mixed_steps = false;
  int64_t seen_step = -1;  // the last global step that this process has seen, for the log; -1: none
};

// A session that is ready for its first step. The caller owns it.
struct COHORT_EXPORT PreparedSession {
  std::unique_ptr<Session> session;
  std::string restored;  // prefix of the restored checkpoint; "" if nothing was restored
  int64_t marker = 0;    // the number of the state of the variables, see TrainingMarker; 0 without a marker
};

// A Supervisor makes and owns it, or a program that has no Supervisor. Only one thread at a time may use it. `graph`,
// `scaffold` and `coordinator` must outlive it, and `graph` and `coordinator` also the sessions that it opens. If the
// coordinator is asked to stop while such a session waits for a task that is not up, the call that waits throws
// CancelledError.
class COHORT_EXPORT SessionManager {
 public:
  // Requires: the scaffold is finalized before any other function of this object is called.
  SessionManager(const Graph& graph, const Scaffold& scaffold, Coordinator& coordinator,
                 SessionManagerOptions options = {});

  // For the chief. Opens a session. If all variables have values, and the marker says that they are of this training,
  // goes on with them (not if `restore` is false). Otherwise restores the newest intact checkpoint and logs how many
  // steps that costs; if there is none, runs init_op and init_fn; and gives the marker a new number. In both cases runs
  // local_init_op. Throws what the session and the saver throw. Throws FailedPreconditionError, with
  // the names of the variables, if a variable has no value after that. With wait_for_checkpoint, throws
  // DeadlineExceededError if no checkpoint has come within max_wait, and CancelledError if the coordinator is asked to
  // stop during the wait.
  PreparedSession PrepareSession(const std::string& target, const SessionConfig& config,
                                 const PrepareOptions& options) const;
  // For a session that must not initialize the model. Works as PrepareSession, but does not run init_op: if nothing is
  // restored, the returned `session` is null.
  PreparedSession RecoverSession(const std::string& target, const SessionConfig& config,
                                 const PrepareOptions& options) const;
  // For the other workers. Opens a session, waits until ready_op names no variable except local ones and the marker is
  // not 0, and runs local_init_op. Throws DeadlineExceededError, with the names of variables without a value, after
  // max_wait. Throws CancelledError if the coordinator is asked to stop during the wait. Throws what the session and
  // check_chief throw.
  PreparedSession WaitForSession(const std::string& target, SessionConfig config) const;
  // Runs local_init_op, and checks that every variable has a value. The three functions above call it. `what_ran` says
  // for the error what has run before. Throws FailedPreconditionError, with names, if a variable has no value.
  void RunLocalInit(Session& session, const std::string& what_ran) const;

 private:
  // What the variables were before the chief gave them values.
  struct Found {
    bool of_this_training = false;     // the marker says so; some may have no value
    std::vector<std::string> missing;  // not filled unless of_this_training
    std::optional<int64_t> step;       // the global step, if it has a value
  };
  Found Look(Session& session, const PrepareOptions& options) const;
  std::string Restore(Session& session, const PrepareOptions& options, const std::vector<std::string>& only = {}) const;
  // Opens a session that waits for no task any more once the coordinator stops.
  std::unique_ptr<Session> Open(const std::string& target, SessionConfig config) const;
  // Returns why the session cannot begin yet, or "".
  std::string ReasonToWait(Session& session, int64_t* marker) const;

  const Graph& graph_;
  const Scaffold& scaffold_;
  Coordinator& coordinator_;
  const SessionManagerOptions options_;
};

}  // namespace cohort::train
