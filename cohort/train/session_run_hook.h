// SessionRunHook: code that a MonitoredSession calls before and after each of its runs. It follows TensorFlow's
// tf.train.SessionRunHook. cohort/train/hooks/hooks.h has the usual hooks.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/runtime/session.h"
#include "cohort/train/coordinator.h"

namespace cohort::train {

class MonitoredSession;

// What a hook adds to a run. The fetched values come back in SessionRunValues, in the same order.
struct COHORT_EXPORT SessionRunArgs {
  std::vector<Output> fetches;
  FeedList feeds;
  std::vector<Node*> targets;
  // The run gets the longest of all timeouts (0 asks for none), and is traced if one hook, or the program, asks for it.
  // `closure` is ignored.
  RunOptions options;
};

// The values that a hook has asked for in BeforeRun. If the run was traced, results.run_metadata() has the trace.
struct COHORT_EXPORT SessionRunValues {
  RunResults results;
};

// One run, as its hooks see it. The MonitoredSession owns it; it lives until the last AfterRun has returned.
class COHORT_EXPORT SessionRunContext {
 public:
  // `original_args` is what the program asked for. Both must outlive the context.
  SessionRunContext(const RunRequest& original_args, Session& session)
      : original_args_(original_args), session_(&session) {}

  const RunRequest& original_args() const { return original_args_; }
  // The session itself. Its Run calls no hook.
  Session& session() const { return *session_; }
  // Makes MonitoredSession::should_stop return true after this run. The other hooks of this run are still called.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }

 private:
  friend class MonitoredSession;  // replaces the session after a recovery between two AfterRun
  const RunRequest& original_args_;
  Session* session_;
  bool stop_requested_ = false;
};

// The base of hooks. The MonitoredSession and the program share a hook by shared_ptr. One session calls a hook from the
// thread that calls the session, so a hook needs no locks. Each function may throw. The session then logs the name of
// the hook and the function, and throws the same error.
class COHORT_EXPORT SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;

  // The name of the hook's class, for messages.
  virtual std::string name() const;
  // Called once, before the graph is finalized. Only here may a hook add nodes to the graph.
  virtual void Begin(Graph& /*graph*/) {}
  // Called after each creation of a session: the first one, and one after each recovery. Threads that the hook needs
  // may be loops of the coordinator. A recovery ends them before it ends their session.
  virtual void AfterCreateSession(Session& /*session*/, Coordinator& /*coordinator*/) {}
  // Called before each run. If the run is repeated after a recovery, it is called again.
  virtual SessionRunArgs BeforeRun(SessionRunContext& /*context*/) { return {}; }
  // Called after each run that has succeeded.
  virtual void AfterRun(SessionRunContext& /*context*/, const SessionRunValues& /*values*/) {}
  // Called once, when the session is closed and no error has ended it. Not called if the program's block is left by an
  // exception.
  virtual void End(Session& /*session*/) {}
};

}  // namespace cohort::train
