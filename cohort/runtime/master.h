// Master: the part of a session that directs. It knows the signatures that were built, and starts their steps on every
// task that has a part.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/prepared_signature.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/signature_builder.h"
#include "cohort/runtime/step_call.h"

namespace cohort {

// Owned by its session. Thread-safe.
class Master {
 public:
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  // Throws as Session's constructor.
  Master(const Graph& graph, const std::string& target, const SessionConfig& config);
  // Closes.
  ~Master();

  // Builds what is not known yet; the values of `feeds` do not matter. The result lives as long as the master.
  const PreparedSignature& Prepare(const FeedList& feeds, const std::vector<Output>& fetches,
                                   const std::vector<Node*>& targets) COHORT_EXCLUDES(build_mu_, mu_);
  // Runs a step to its end. `feeds` stand in the order of the signature.
  std::vector<Tensor> RunStep(const PreparedSignature& prepared, const FeedValues& feeds, const RunOptions& options);
  // Starts a step. `done` is called once, on any thread; at the latest when the master closes.
  void StartStep(const PreparedSignature& prepared, const FeedValues& feeds, const RunOptions& options, Done done);
  std::vector<DeviceAttributes> ListDevices() COHORT_EXCLUDES(build_mu_);
  void Close() COHORT_EXCLUDES(build_mu_);
  const Graph& graph() const { return graph_; }

 private:
  // Warns once in the log if a program adds nodes between its runs: kGrowthsToTell signatures in a row were built, each
  // after the graph had grown.
  void WatchGrowth() COHORT_REQUIRES(build_mu_);
  static void CheckFeeds(const PreparedSignature& prepared, const FeedValues& feeds);
  void CheckOpen() const;
  StepLimits LimitsOf(const RunOptions& options) const;
  std::shared_ptr<StepCall> MakeCall(const PreparedSignature& prepared, int64_t step, const RunOptions& options,
                                     StepCall::Done done) const;

  const Graph& graph_;
  const SessionConfig config_;
  const uint64_t session_id_;
  std::atomic<int64_t> next_step_{1};
  std::atomic<bool> closed_{false};

  Mutex build_mu_;  // one signature is built at a time
  SignatureBuilder builder_ COHORT_GUARDED_BY(build_mu_);
  static constexpr int kGrowthsToTell = 20;
  int growths_ COHORT_GUARDED_BY(build_mu_) = 0;  // signatures in a row that were built after the graph had grown
  int64_t version_before_growths_ COHORT_GUARDED_BY(build_mu_) = -1;
  int64_t built_version_ COHORT_GUARDED_BY(build_mu_) = -1;  // the graph's, when the latest signature was built

  Mutex mu_;
  std::unordered_multimap<size_t, std::unique_ptr<const PreparedSignature>> prepared_ COHORT_GUARDED_BY(mu_);
  StepWatch watch_;  // of the steps that StartStep has started
};

}  // namespace cohort
