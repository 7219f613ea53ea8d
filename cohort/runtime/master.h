// Master: the part of a session that plans and directs - it prunes, places, partitions and registers a signature once,
// and starts its steps on every task that has a part.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/build_graph.h"
#include "cohort/runtime/graph_dump.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

// Fed values where they lie: in a list of feeds or of values.
class FeedValues {
 public:
  FeedValues(const FeedList& feeds)  // NOLINT(google-explicit-constructor)
      : first_(feeds.empty() ? nullptr : &feeds.front().second), size_(feeds.size()), stride_(sizeof(feeds.front())) {}
  FeedValues(const std::vector<Tensor>& values)  // NOLINT(google-explicit-constructor)
      : first_(values.data()), size_(values.size()), stride_(sizeof(Tensor)) {}

  size_t size() const { return size_; }
  const Tensor& operator[](size_t i) const {
    return *reinterpret_cast<const Tensor*>(reinterpret_cast<const char*>(first_) + i * stride_);
  }
  const Tensor& operator[](int i) const { return (*this)[static_cast<size_t>(i)]; }

 private:
  const Tensor* first_;
  size_t size_;
  size_t stride_;
};

// What a signature has become: which task takes which feeds and returns which fetches.
class PreparedSignature {
 public:
  struct Part {
    std::shared_ptr<TaskClient> task;
    ExecutableKey key;
    std::vector<int> arg_feeds;    // for each arg of the task's executable the index of the feed
    std::vector<int> ret_fetches;  // for each of its results the index of the fetch
  };
  class Master* master = nullptr;
  Signature signature;
  std::vector<Part> parts;     // the default task's part, if it has one, is last
  std::vector<int> fed_fetch;  // index of the feed that answers a fetch, or -1
  // The one part, where it runs on the caller's thread and its results are the fetches in order.
  std::weak_ptr<Executable> inline_part;
  bool calls_functions = false;  // a loop among them may run for as long as it likes
  GraphDump dump;
};

class Master {
 public:
  Master(const Graph& graph, const std::string& target, const SessionConfig& config);
  ~Master();

  // Builds what is not known yet; the values of `feeds` do not matter. The result lives as long as the master.
  const PreparedSignature& Prepare(const FeedList& feeds, const std::vector<Output>& fetches,
                                   const std::vector<Node*>& targets);
  // `feeds` in the order of the signature.
  std::vector<Tensor> RunStep(const PreparedSignature& prepared, const FeedValues& feeds, const RunOptions& options);
  std::vector<DeviceAttributes> ListDevices();
  void Close();
  const Graph& graph() const { return graph_; }

 private:
  struct StepCall;
  struct Placed {
    std::unique_ptr<Graph> graph;
    std::vector<std::string> device_of_node;
    std::vector<Output> fetches;
  };
  std::unique_ptr<PreparedSignature> Build(const Signature& signature) REQUIRES(build_mu_);
  // Says once in the log that a program adds nodes between its runs: kGrowthsToTell signatures in a row were built,
  // each after the graph had grown.
  void WatchGrowth() REQUIRES(build_mu_);
  std::vector<DeviceAttributes> DevicesFor(const Graph& graph) REQUIRES(build_mu_);
  std::shared_ptr<TaskClient> TaskFor(const DeviceName& task) REQUIRES(build_mu_);
  void AddArgsPerDevice(Placed& placed, const std::vector<Node*>& args) REQUIRES(build_mu_);
  void AddRetvals(Placed& placed) REQUIRES(build_mu_);
  void RegisterParts(Placed placed, PreparedSignature& prepared) REQUIRES(build_mu_);
  static void CheckFeeds(const PreparedSignature& prepared, const FeedValues& feeds);
  std::vector<Tensor> RunParts(const PreparedSignature& prepared, const FeedValues& feeds, int64_t step,
                               int64_t timeout_in_ms);

  const Graph& graph_;
  const SessionConfig config_;
  const uint64_t session_id_;
  std::unique_ptr<ClusterView> view_;
  std::atomic<int64_t> next_step_{1};
  std::atomic<bool> closed_{false};

  Mutex build_mu_;  // one signature is built at a time
  std::map<std::string, std::shared_ptr<TaskClient>> tasks_ GUARDED_BY(build_mu_);
  int32_t next_executable_ GUARDED_BY(build_mu_) = 0;
  static constexpr int kGrowthsToTell = 20;
  int growths_ GUARDED_BY(build_mu_) = 0;  // signatures in a row that were built after the graph had grown
  int64_t version_before_growths_ GUARDED_BY(build_mu_) = -1;
  int64_t built_version_ GUARDED_BY(build_mu_) = -1;  // of the graph, when the latest signature was built

  Mutex mu_;
  std::unordered_multimap<size_t, std::unique_ptr<PreparedSignature>> prepared_ GUARDED_BY(mu_);
};

}  // namespace cohort
