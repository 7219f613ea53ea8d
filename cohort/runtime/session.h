// Session: runs parts of a graph on devices of this process or on the tasks of a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/core/tls_options.h"
#include "cohort/device/closure_id.h"
#include "cohort/device/device_attributes.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/step_stats.h"

namespace cohort {

// The settings of a session. They are the fields of TensorFlow's ConfigProto that Cohort uses, with its names and
// defaults, and some of Cohort's own.
struct COHORT_EXPORT SessionConfig {
  std::map<std::string, int> device_count;  // {"CPU", 2}: two logical CPU devices; types without a backend are ignored
  // The number of threads that a kernel may use. 0: the number of cores, divided by the number of CPU devices.
  int intra_op_parallelism_threads = 0;
  // This field has no effect, because a device runs one kernel at a time. It exists because programs for TensorFlow set
  // it. The first session or server of the process with a value other than 0 logs a warning.
  int inter_op_parallelism_threads = 0;
  bool allow_soft_placement = false;
  // One line for each op to stdout when a signature is prepared. debugging::SetLogDevicePlacement sets it for all
  // sessions.
  bool log_device_placement = false;
  std::vector<std::string>
      device_filters;  // only tasks that a filter matches, and the default task, are used; empty: all
  std::chrono::milliseconds operation_timeout{0};  // the time limit of each run; 0: no limit
  // If a step takes longer than this, a line in the log names the tasks that are still at work. The pause until the
  // next such line is twice as long each time. 0: no lines. A step that the calling thread runs all by itself is not
  // watched.
  std::chrono::milliseconds late_step{10'000};
  // A step fails with DeadlineExceededError if it has made no progress for this time: no kernel of it has started or
  // ended on any task, and no bytes of it have arrived. The error says which task is late, what it does, and where its
  // threads are. A step that only waits for other steps (in a queue, an accumulator, a step clock or a chief record) or
  // for a collective is not late; collectives have a limit of their own. 0: no limit. If not set: as many seconds as
  // COHORT_PROGRESS_LIMIT says, or else 10 minutes. docs/parameter_servers.md says more.
  std::optional<std::chrono::milliseconds> progress_limit;
  // The longest time for which the session waits for a task that is not up yet.
  std::chrono::milliseconds connect_timeout = std::chrono::hours(2);
  // The session calls it between two attempts to reach a task that is not up, about every half second. If it returns an
  // error, the wait ends, and the call that waits (the constructor, Run, RunAsync or MakeCallable) fails with this
  // error. It is called on any thread, and on several at once, as long as the session exists. It must return soon,
  // throw nothing, and use no session. Null: only the limits end the wait.
  std::function<Status()> interrupted = nullptr;
  // Allows connections that are not encrypted to addresses other than loopback. It has an effect only if the target is
  // a server of another process.
  bool allow_insecure = false;
  // The files of TLS. If none is set: those of the environment (cohort/core/tls_options.h). They have an effect only if
  // the target is a server of another process.
  TlsOptions tls;
};

// Logs a warning if `config` sets inter_op_parallelism_threads, which has no effect. The process logs it once. Session
// and Server call it.
COHORT_EXPORT void WarnOfFieldsWithoutEffect(const SessionConfig& config);

// Whether a run records what its nodes do.
enum class TraceLevel {
  kNoTrace,
  kFullTrace,  // RunResults::run_metadata has each execution of each node, on all tasks
};

struct COHORT_EXPORT RunOptions {
  std::chrono::milliseconds timeout{0};  // 0: SessionConfig::operation_timeout
  // If it is valid, a task makes each update of the run only if no earlier run of the same closure has made it there.
  // The random ops of the run draw numbers that follow from their seeds and from the closure's number. A
  // ClusterCoordinator sets it.
  ClosureId closure = {};
  TraceLevel trace_level = TraceLevel::kNoTrace;
  // Only for RunAsync. If all nodes of the run are on one device, and the run has no feeds and no fetches, the task of
  // the device makes the run again each time it has ended, without a message to or from the session. `done` then gets
  // the error of the run that fails or is cancelled. SessionConfig::late_step does not hold for these runs. In all
  // other cases there is one run, and `done` gets OK when it has ended: if the run has a time limit, is of a closure or
  // is traced, or if the session has an interceptor. Run throws InvalidArgumentError.
  bool repeat_on_task = false;
};

using FeedList = std::vector<std::pair<Output, Tensor>>;

// The request of a run: values to feed, values to fetch, and targets (nodes that must run and have no result).
struct COHORT_EXPORT RunRequest {
  FeedList feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  RunOptions options;
};

// The fetched values of a run, in the order of the fetches. A value can be found by its position or by its Output.
// Converts to a std::vector<Tensor>. Const methods are thread-safe.
class COHORT_EXPORT RunResults {
 public:
  RunResults() = default;
  // `fetches[i]` is the Output whose value is `values[i]`. Requires: both have the same length.
  RunResults(std::vector<Tensor> values, std::shared_ptr<const std::vector<Output>> fetches)
      : values_(std::move(values)), fetches_(std::move(fetches)) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const Tensor& operator[](size_t i) const { return values_[i]; }
  Tensor& operator[](size_t i) { return values_[i]; }
  // Returns the value of `fetch`. Throws InvalidArgumentError, with the names of the fetches, if the run did not fetch
  // it.
  const Tensor& operator[](const Output& fetch) const;
  // Throws std::out_of_range if there is no value i. (operator[] does not check.)
  const Tensor& at(size_t i) const { return values_.at(i); }
  const Tensor& front() const { return values_.front(); }
  const Tensor& back() const { return values_.back(); }
  std::vector<Tensor>::const_iterator begin() const { return values_.begin(); }
  std::vector<Tensor>::const_iterator end() const { return values_.end(); }
  const std::vector<Tensor>& values() const& { return values_; }
  std::vector<Tensor> values() && { return std::move(values_); }
  operator std::vector<Tensor>() const& { return values_; }         // NOLINT(google-explicit-constructor)
  operator std::vector<Tensor>() && { return std::move(values_); }  // NOLINT(google-explicit-constructor)
  // Returns what the run has recorded, if it was traced (RunOptions::trace_level); else an object without devices.
  // timeline.h shows it to people.
  const RunMetadata& run_metadata() const;
  // Returns the same to be shared, or null if the run was not traced.
  const std::shared_ptr<const RunMetadata>& shared_run_metadata() const { return metadata_; }
  void set_run_metadata(std::shared_ptr<const RunMetadata> metadata) { metadata_ = std::move(metadata); }
  // Removes the values from position `size` on. Requires: size <= this->size().
  void Truncate(size_t size) { values_.resize(size); }

 private:
  std::vector<Tensor> values_;
  std::shared_ptr<const std::vector<Output>> fetches_;  // may be longer than values_, never shorter
  std::shared_ptr<const RunMetadata> metadata_;         // null if the run was not traced
};

// A session calls its interceptor before and after every Session::Run and RunAsync, but not for Callables. The hooks of
// training loops use it. The session and its runs share it by shared_ptr. Several threads may call it at the same time.
// BeforeRun is called on the thread that calls Run or RunAsync. AfterRun is called on that thread too, or for RunAsync
// on the thread that ends the run.
class COHORT_EXPORT RunInterceptor {
 public:
  virtual ~RunInterceptor() = default;
  // Called before a run. May add feeds, fetches and targets after those of the caller, and may change the options. If
  // it throws, the run does not begin and fails with this error, and AfterRun is not called.
  virtual void BeforeRun(RunRequest* request) = 0;
  // Called after the run, also if the run has failed. If `status` is OK, `results` has all fetched values, also those
  // that BeforeRun added. If AfterRun throws, the run fails with this error. But if the run was a RunAsync that had
  // already failed, `done` gets the first error.
  virtual void AfterRun(const RunRequest& request, const Status& status, const RunResults& results) = 0;
};

// Runs one signature of a session without looking it up again. Valid as long as its session exists. Cheap to copy.
// Thread-safe. The session's interceptor does not see its runs.
class COHORT_EXPORT Callable {
 public:
  // Runs a step. `feeds` must be in the order of the `feeds` of MakeCallable. When the call has returned, the program
  // may write into them. Throws what Session::Run throws.
  //
  // If `next` is not empty, it returns the feeds that the next call will probably have, or nothing if they are not
  // known yet. A GPU that runs recorded steps calls it at most once while the step runs, on the calling thread, and
  // copies these feeds meanwhile. With an operation_timeout it is not called. If the next call has the same tensors,
  // it need not copy them again. Nobody may write into them until a later call has returned without an error, or
  // DropNext. `next` must neither wait nor use the session. If it throws, the feeds are not copied ahead, and the step
  // goes on.
  using NextFeeds = std::function<std::vector<Tensor>()>;
  RunResults operator()(const std::vector<Tensor>& feeds, const NextFeeds& next = {}) const;
  // Says that the feeds that the last `next` has returned do not come, or that they change. Later calls copy their
  // feeds again, and the memory of the copies is free. A loop that gives `next` calls it at its end. Requires: no call
  // with a `next` is running. Does not wait.
  void DropNext() const;

 private:
  friend class Session;
  explicit Callable(const class PreparedSignature& prepared) : prepared_(&prepared) {}
  const PreparedSignature* prepared_;  // owned by the session
};

// Runs steps of a graph. The program owns it, or an object of Cohort that made it. All methods but SetInterceptor are
// thread-safe. The graph must live longer than the session; nodes may be added to the graph while the session exists.
// Close, or the destructor, ends the session.
class COHORT_EXPORT Session {
 public:
  // `target` is "" for devices of the session's own in this process, or Server::Target(), or "grpc://host:port" for a
  // cluster. Connects to the target's task. Connects to other tasks when a signature that needs them is prepared.
  // Throws NotFoundError for a target of another kind, InvalidArgumentError if `config` or the address is wrong,
  // FailedPreconditionError if RegisterAll() (cohort/registration.h) was not called, and UnavailableError or
  // DeadlineExceededError if the target's task cannot be reached.
  explicit Session(const Graph& graph, const std::string& target = "", const SessionConfig& config = {});
  // Calls Close().
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs the nodes that `fetches` and `targets` need, with `feeds` in place of the values of the fed Outputs. Returns
  // the fetched values in order. The errors name tasks, nodes and shapes. Throws
  // - InvalidArgumentError, for example if dtype or shape of a feed do not fit, or a placeholder is not fed;
  // - UnavailableError if a task is lost, and AbortedError if the task can be reached again after a restart or a lost
  //   connection, because its state for the session is gone;
  // - DeadlineExceededError if the run takes longer than its timeout, makes no progress for SessionConfig's
  //   progress_limit, or needs a task that is not up in time;
  // - FailedPreconditionError if the session is closed, and CancelledError if it is closed during the run;
  // - what kernels throw, such as OutOfRangeError at the end of a dataset.
  RunResults Run(const FeedList& feeds, const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                 const RunOptions& options = {});
  RunResults Run(const std::vector<Output>& fetches) { return Run({}, fetches); }
  // Fetches one value.
  Tensor Run(Output fetch) { return Run({}, {fetch}).front(); }
  // Runs one target.
  void Run(Node* target) { Run({}, {}, {target}); }

  // Starts a run and returns. Calls `done` once, on any thread, perhaps before RunAsync returns, and at the latest when
  // the session closes. `done` gets OK and the fetched values, or the error that Run would have thrown and no values:
  // RunAsync itself throws nothing. `done` must not wait and must not throw. Any number of runs may be in progress; the
  // order of their updates is not defined. If the signature is new, RunAsync prepares it on the calling thread before
  // it returns.
  using RunDone = std::function<void(const Status& status, RunResults results)>;
  void RunAsync(RunRequest request, RunDone done);

  // Cancels the runs of RunAsync that are in progress: their `done` gets `why`, or another error if a run had failed
  // before. Does not wait for that. A run that has begun to change variables on a task finishes its updates there. The
  // session stays open. Requires: !why.ok().
  void CancelRuns(const Status& why);

  // Sets the interceptor of later runs; null: none. Requires: no run is in progress, and no other thread uses the
  // session meanwhile.
  void SetInterceptor(std::shared_ptr<RunInterceptor> interceptor);

  // Prepares the signature and returns a callable for it. Throws what Run throws when it prepares a signature.
  Callable MakeCallable(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                        const std::vector<Node*>& targets = {});

  // Returns the devices of the default task and of the tasks to which the session has connected.
  std::vector<DeviceAttributes> ListDevices();
  const Graph& graph() const;
  // Cancels the runs that are in progress, which fail with CancelledError, and frees what the tasks hold for this
  // session. Waits until the steps on tasks of this process have ended, but at most 60 s for each signature. When Close
  // returns, the `done` of every RunAsync has returned. (If a `done` itself calls Close, all other ones have.) Later
  // calls of Run throw FailedPreconditionError. Variables on servers of a cluster keep their values. A second call of
  // Close returns at once, even if the first one is still waiting.
  void Close();

  // Removes the resources (variables, ...) in `containers` on every task of the target's cluster. An empty list means
  // the default container. Connects to every task of the cluster, and throws what the constructor throws. Has no effect
  // for the target "", because each session has variables of its own.
  static void Reset(const std::string& target, const std::vector<std::string>& containers = {},
                    const SessionConfig& config = {});

 private:
  RunResults RunIntercepted(RunRequest request);

  std::unique_ptr<class Master> master_;
  std::shared_ptr<RunInterceptor> interceptor_;
};

}  // namespace cohort
