// Session: runs parts of a graph, in this process or on the tasks of a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/device/device_attributes.h"
#include "cohort/graph/graph.h"

namespace cohort {

// The fields of TensorFlow's ConfigProto that have a meaning here, with its names and defaults.
struct SessionConfig {
  std::map<std::string, int>
      device_count;                      // {"CPU", 2}: two logical CPU devices; types that there are not do not count
  int intra_op_parallelism_threads = 0;  // OpenMP team of each device; 0 = the cores, divided by the devices
  // Has no effect, because a device runs one kernel at a time. TensorFlow's programs set it, so it is accepted: the
  // first session or server of the process that is given another value than 0 logs a warning.
  int inter_op_parallelism_threads = 0;
  bool allow_soft_placement = false;
  bool log_device_placement = false;               // one line an op to stdout when a signature is first run
  std::vector<std::string> device_filters;         // a task that no filter matches is not used; empty: all are
  std::chrono::milliseconds operation_timeout{0};  // of each Run; 0: none
  // A step that takes longer, and that the caller's thread does not run itself, is told in the log with the tasks still
  // at work, and again each time that this has doubled; 0: never.
  std::chrono::milliseconds late_step{10'000};
  // How long a task that has not been seen yet is waited for.
  std::chrono::milliseconds connect_timeout = std::chrono::hours(2);
  bool allow_insecure = false;  // a client of a cluster off loopback without TLS
};

// Logs a warning for each field of `config` that is set and has no effect, once a process and field. Session and Server
// call it.
void WarnOfFieldsWithoutEffect(const SessionConfig& config);

struct RunOptions {
  std::chrono::milliseconds timeout{0};  // 0: SessionConfig::operation_timeout
};

using FeedList = std::vector<std::pair<Output, Tensor>>;

// What a run needs to know: values to feed, values to fetch, nodes that just have to run.
struct RunRequest {
  FeedList feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  RunOptions options;
};

// The fetched values of a run, in the order of the fetches. A value can be asked for by its position or by its Output.
// Becomes a std::vector<Tensor> where one is wanted.
class RunResults {
 public:
  RunResults() = default;
  // `fetches[i]` is what `values[i]` was fetched for. Requires: both have one length.
  RunResults(std::vector<Tensor> values, std::shared_ptr<const std::vector<Output>> fetches)
      : values_(std::move(values)), fetches_(std::move(fetches)) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const Tensor& operator[](size_t i) const { return values_[i]; }
  Tensor& operator[](size_t i) { return values_[i]; }
  // The value of `fetch`. Throws InvalidArgumentError, with the names of the fetches, if the run did not fetch it.
  const Tensor& operator[](const Output& fetch) const;
  const Tensor& at(size_t i) const { return values_.at(i); }
  const Tensor& front() const { return values_.front(); }
  const Tensor& back() const { return values_.back(); }
  std::vector<Tensor>::const_iterator begin() const { return values_.begin(); }
  std::vector<Tensor>::const_iterator end() const { return values_.end(); }
  const std::vector<Tensor>& values() const& { return values_; }
  std::vector<Tensor> values() && { return std::move(values_); }
  operator std::vector<Tensor>() const& { return values_; }         // NOLINT(google-explicit-constructor)
  operator std::vector<Tensor>() && { return std::move(values_); }  // NOLINT(google-explicit-constructor)
  // Forgets the values from position `size` on. Requires: size <= this->size().
  void Truncate(size_t size) { values_.resize(size); }

 private:
  std::vector<Tensor> values_;
  std::shared_ptr<const std::vector<Output>> fetches_;  // may be longer than values_, never shorter
};

// Sees every Session::Run and RunAsync of the session that it was given to (callables pass it by). Hooks of training
// loops stand on this. Calls come on the threads that run the session, several at a time if several runs are under way.
class RunInterceptor {
 public:
  virtual ~RunInterceptor() = default;
  // Before a run. May add feeds, fetches and targets behind those of the caller, and change the options. What it throws
  // is thrown by the run, which then does not begin.
  virtual void BeforeRun(RunRequest* request) = 0;
  // After the run, with its outcome and, if that is ok, all values that were fetched, the added ones included. What it
  // throws is thrown by the run.
  virtual void AfterRun(const RunRequest& request, const Status& status, const RunResults& results) = 0;
};

// A (feeds, fetches, targets) signature resolved once. Valid as long as its session; thread-safe.
class Callable {
 public:
  // Feeds in the order of MakeCallable. Throws as Session::Run.
  RunResults operator()(const std::vector<Tensor>& feeds) const;

 private:
  friend class Session;
  explicit Callable(const class PreparedSignature& prepared) : prepared_(&prepared) {}
  const PreparedSignature* prepared_;  // its session's
};

// Thread-safe. The graph must outlive it; nodes may be added to the graph while the session exists.
class Session {
 public:
  // `target`: "" for devices of its own in this process, a Server's Target() or "grpc://host:port" for a cluster.
  // Throws NotFoundError for a target of another kind, UnavailableError / DeadlineExceededError where the target's own
  // task cannot be reached. Other tasks are connected to when a step first needs them.
  explicit Session(const Graph& graph, const std::string& target = "", const SessionConfig& config = {});
  // Closes.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs what `fetches` and `targets` need with `feeds` in place of their values, and returns the fetches in order.
  // Throws InvalidArgumentError (a feed whose dtype or shape does not fit, a placeholder that is not fed, ...), what
  // kernels throw, UnavailableError for a task that was lost, AbortedError for one that was restarted,
  // DeadlineExceededError; each names tasks, nodes and shapes.
  RunResults Run(const FeedList& feeds, const std::vector<Output>& fetches, const std::vector<Node*>& targets = {},
                 const RunOptions& options = {});
  RunResults Run(const std::vector<Output>& fetches) { return Run({}, fetches); }
  // One fetch.
  Tensor Run(Output fetch) { return Run({}, {fetch}).front(); }
  // Targets only.
  void Run(Node* target) { Run({}, {}, {target}); }

  // Starts a run and returns. `done` is called once: with ok and the fetched values, or with what Run would have thrown
  // and no values; on any thread, perhaps before RunAsync returns, and at the latest when the session closes. It must
  // not block and must not throw. Any number of runs may be under way; their updates are applied in no particular
  // order. The first run of a signature is prepared on the calling thread. Throws nothing of its own.
  using RunDone = std::function<void(const Status& status, RunResults results)>;
  void RunAsync(RunRequest request, RunDone done);

  // From now on `interceptor` sees the runs; null: nobody does. Requires: no run is under way.
  void SetInterceptor(std::shared_ptr<RunInterceptor> interceptor);

  Callable MakeCallable(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                        const std::vector<Node*>& targets = {});

  // Devices of the tasks connected so far and of the default task.
  std::vector<DeviceAttributes> ListDevices();
  const Graph& graph() const;
  // Cancels what is under way, then frees what the tasks hold for this session. Run throws FailedPreconditionError
  // afterwards. Variables of a cluster stay.
  void Close();

  // Drops the resources (variables, ...) in `containers` on every task of the target's cluster; {} = the default one.
  static void Reset(const std::string& target, const std::vector<std::string>& containers = {},
                    const SessionConfig& config = {});

 private:
  RunResults RunIntercepted(RunRequest request);

  std::unique_ptr<class Master> master_;
  std::shared_ptr<RunInterceptor> interceptor_;
};

}  // namespace cohort
