// Master: directs the steps of a session. It keeps the prepared signatures, and starts each step on every task that
// has a part.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/prepared_signature.h"
#include "cohort/runtime/progress_watch.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/signature_builder.h"
#include "cohort/runtime/step_call.h"

namespace cohort {

// Prepares the signatures of one session and starts its steps. The session owns it. Thread-safe.
class Master {
 public:
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  // Throws what Session's constructor throws.
  Master(const Graph& graph, const std::string& target, const SessionConfig& config);
  // Calls Close().
  ~Master();

  // Returns the prepared signature. Prepares it if it is new. Only one thread at a time prepares a signature; other
  // threads with a new signature wait. Does not use the values in `feeds`. The result lives as long as the master.
  // Throws FailedPreconditionError if the session is closed, and what SignatureBuilder::Build throws.
  const PreparedSignature& Prepare(const FeedList& feeds, const std::vector<Output>& fetches,
                                   const std::vector<Node*>& targets) COHORT_EXCLUDES(build_mu_, mu_);
  // Runs a step, waits for its end, and returns the fetched values. `feeds` must be in the order of the signature.
  // `trace` collects what the nodes do; null: nothing does. `next` is as in Callable, and may be empty. Throws what
  // Session::Run throws.
  std::vector<Tensor> RunStep(const PreparedSignature& prepared, const FeedValues& feeds, const RunOptions& options,
                              const std::shared_ptr<StepTrace>& trace, const Callable::NextFeeds& next = {});
  // Starts a step. Calls `done` once, on any thread, at the latest during Close. Throws InvalidArgumentError if the
  // number, dtypes or shapes of the feeds do not fit the signature, and FailedPreconditionError if the session is
  // closed. If it throws, it does not call `done`.
  void StartStep(const PreparedSignature& prepared, const FeedValues& feeds, const RunOptions& options,
                 const std::shared_ptr<StepTrace>& trace, Done done);
  // Cancels the steps of StartStep that are running: they fail with `why`, unless they have failed before. Does not
  // wait for their ends.
  void CancelStarted(const Status& why);
  // Returns the devices of the tasks to which the session has connected.
  std::vector<DeviceAttributes> ListDevices() COHORT_EXCLUDES(build_mu_);
  // Cancels the steps that are running, and frees what the tasks hold for this session. Waits until the steps on tasks
  // of this process have ended, but at most 60 s for each signature. Then ends the steps of StartStep that are still
  // running: their `done` gets an error. Later calls of Close do nothing.
  void Close() COHORT_EXCLUDES(build_mu_);
  const Graph& graph() const { return graph_; }

  // What the session may do for the program at this moment.
  struct Work {
    bool in_call = false;  // a thread prepares a signature, or RunStep waits for the tasks of a step
    std::vector<std::shared_ptr<StepCall>> started;         // by StartStep; they may have ended
    std::vector<std::shared_ptr<Executable>> inline_parts;  // their steps run on the threads that call RunStep
  };
  // Adds the work of this master. The caller must free the result without a lock, because it may hold the last
  // reference.
  void AppendWork(Work* work) const COHORT_EXCLUDES(mu_);
  // Returns how many steps were started, plus how many signatures were prepared.
  uint64_t num_starts() const;

 private:
  // Counts the calling thread among those that start a step now. Throws FailedPreconditionError if the session is
  // closed.
  class StartScope {
   public:
    explicit StartScope(Master& master) COHORT_EXCLUDES(master.mu_);
    ~StartScope() COHORT_EXCLUDES(master_.mu_);
    StartScope(const StartScope&) = delete;
    StartScope& operator=(const StartScope&) = delete;

   private:
    Master& master_;
    std::multiset<std::thread::id>::iterator it_;
  };
  // Waits until no other thread is starting a step. Requires: no more steps start, because closed_ is set.
  void AwaitStarts() COHORT_EXCLUDES(mu_);
  // Logs a warning, once, if the program adds nodes between its runs: if kGrowthsToTell signatures in a row were
  // prepared after the graph had grown.
  void WatchGrowth() COHORT_REQUIRES(build_mu_);
  // Counts the calling thread among those that prepare a signature or wait for a step.
  class CallScope {
   public:
    explicit CallScope(std::atomic<int>& count) : count_(count) { ++count_; }
    ~CallScope() { --count_; }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    std::atomic<int>& count_;
  };
  static void CheckFeeds(const PreparedSignature& prepared, const FeedValues& feeds);
  void CheckOpen() const;
  // Returns the error that the caller of a step gets. Its message is that of `status`, and tells for each node that it
  // names which line of the program made the node. Also dumps the graphs of the signature (GraphDump). If the code is
  // kOutOfRange, which is the end of the data, returns `status` itself and dumps nothing.
  Status Failed(const PreparedSignature& prepared, int64_t step, const Status& status) const;
  StepLimits LimitsOf(const RunOptions& options) const;
  // Returns whether the task repeats the step by itself, if RunAsync starts it with these options.
  bool Repeats(const PreparedSignature& prepared, const RunOptions& options, bool traced) const;
  std::shared_ptr<StepCall> MakeCall(const PreparedSignature& prepared, const StepStart& step,
                                     const RunOptions& options, StepCall::Done done) const;

  const Graph& graph_;
  const SessionConfig config_;
  const uint64_t session_id_;
  std::atomic<int64_t> next_step_{1};
  std::atomic<bool> closed_{false};
  std::atomic<int> in_call_{0};        // CallScopes
  std::atomic<uint64_t> prepares_{0};  // signatures that Prepare has begun to prepare

  Mutex build_mu_;  // held while a signature is prepared
  SignatureBuilder builder_ COHORT_GUARDED_BY(build_mu_);
  static constexpr int kGrowthsToTell = 20;
  int growths_ COHORT_GUARDED_BY(build_mu_) = 0;  // signatures in a row that were prepared after the graph had grown
  int64_t version_before_growths_ COHORT_GUARDED_BY(build_mu_) = -1;
  int64_t built_version_ COHORT_GUARDED_BY(build_mu_) = -1;  // version of the graph at the latest preparation

  mutable Mutex mu_;
  std::unordered_multimap<size_t, std::unique_ptr<const PreparedSignature>> prepared_ COHORT_GUARDED_BY(mu_);
  CondVar started_;
  std::multiset<std::thread::id> starting_ COHORT_GUARDED_BY(mu_);  // the threads of all StartScopes
  mutable StepWatch watch_;                                         // checks the time limits of the steps of StartStep
  ProgressWatch progress_;                                          // fails the steps that make no progress
};

}  // namespace cohort
