// PlanRun: one member's part in one execution of a collective by a plan. Internal to plan/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/collective/engine.h"
#include "cohort/collective/plan/plan.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/reduction.h"

namespace cohort::collective {

// Holds the call, its plan and its memory, and the messages that have come and are not used yet. If a message comes
// before the member calls, the PlanEngine makes this object for the message, and it only keeps messages until Start.
// The PlanEngine owns it until it has ended; running work shares ownership. Thread-safe. At most one thread at a time
// runs the plan's steps: a thread that calls Start, Deliver, CheckSchedules or Fail, or a worker thread of the group.
// No thread waits for a message.
class PlanRun final : public UnfinishedCollective, public std::enable_shared_from_this<PlanRun> {
 public:
  // `on_end` tells the owner that the run has ended. It is called once, before the call's `done`.
  PlanRun(EngineHost& host, const ReductionTable& reductions, int rank, const CallId& id, std::function<void()> on_end)
      : host_(host), reductions_(reductions), rank_(rank), id_(id), on_end_(std::move(on_end)) {}

  // The member has begun the collective. Runs the steps that are possible. If the input has 128 KiB or more, this
  // thread runs only the sends at the beginning, and a worker thread the rest. Call it at most once. Requires: `plan`
  // was made for the call's signature.
  void Start(CollectiveCall call, std::shared_ptr<const Plan> plan) COHORT_EXCLUDES(mu_);
  // Handles a message of a peer, before or after Start, and continues the plan if the message makes a step possible. If
  // the input has 128 KiB or more, a worker thread continues the plan, unless `may_compute_inline` is true and the
  // message has at most 1 MiB. Otherwise this thread continues it. Fails the group if the peer's signature differs.
  // Does nothing if the run has ended or failed.
  void Deliver(const DataMessage& message, Tensor tensor, bool may_compute_inline) COHORT_EXCLUDES(mu_);
  // Fails the group if this run waits for a member that is gone.
  void CheckPeers() COHORT_EXCLUDES(mu_);
  // Asks the group again whether the schedules of the peers are equal to this call's. Continues the run if it has
  // waited for that answer.
  void CheckSchedules() COHORT_EXCLUDES(mu_);
  // Ends the call with `why`, unless it has ended. If a thread is running steps, that thread ends the call after its
  // present step. If the call was not started, Start ends it.
  void Fail(const Status& why) COHORT_EXCLUDES(mu_);

  std::string Describe() const override COHORT_EXCLUDES(mu_);
  std::string DescribeWait() const override COHORT_EXCLUDES(mu_);
  std::string name() const override COHORT_EXCLUDES(mu_);
  std::optional<uint64_t> Stamp() const override COHORT_EXCLUDES(mu_);
  std::vector<int> AwaitedRanks() const override COHORT_EXCLUDES(mu_);

 private:
  using Key = std::pair<int, int32_t>;  // sender, sequence
  // What a message says about its sender's call.
  struct Sender {
    int rank;
    CallSignature signature;
    uint64_t schedule_fingerprint;
  };
  // A peer whose schedule has another fingerprint than this call's. The two schedules may agree nonetheless (see
  // ScheduleAgreement). The run does not end with a result before it is known that they do.
  struct ScheduleMismatch {
    int peer;
    uint64_t schedule_fingerprint;
    Status different;  // ok if the signatures are equal; else the error to report if the schedules agree
  };

  std::string DescribeLocked() const COHORT_REQUIRES(mu_);
  std::vector<int> AwaitedLocked() const COHORT_REQUIRES(mu_);
  void FailGroup(const Status& why) COHORT_EXCLUDES(mu_);
  // Returns an error if the peer's signature differs. If its schedule also differs, returns ok and sets `*deferred`:
  // the comparison of the schedules will report a better error.
  Status Compare(const Sender& theirs, bool* deferred) COHORT_REQUIRES(mu_);
  void SettleMismatches() COHORT_EXCLUDES(mu_);
  // Returns true if a thread can run the next step or end the run.
  bool CanAdvance() const COHORT_REQUIRES(mu_);
  // Runs the steps that can run, on this thread or on a worker thread.
  void AdvanceSomewhere(bool may_compute_inline) COHORT_EXCLUDES(mu_);
  // Runs steps until a step has to wait for a message. Requires: the caller has set running_.
  void Advance() COHORT_EXCLUDES(mu_);
  // Runs the sends at the beginning of the plan. Requires: the caller has set running_.
  void SendFirst() COHORT_EXCLUDES(mu_);
  void PrepareMemory();
  void Execute(const PlanStep& step, Tensor received);
  void Reduce(const PlanStep& step, const Tensor& received);
  const Tensor& TensorOf(PlanBuffer buffer) const;
  Tensor View(const BufferOffset& place, int64_t count) const;
  char* Address(const BufferOffset& place) const;
  DType TypeIn(PlanBuffer buffer) const;
  void End(const Status& status) COHORT_EXCLUDES(mu_);

  EngineHost& host_;
  const ReductionTable& reductions_;
  const int rank_;
  const CallId id_;
  const std::function<void()> on_end_;

  mutable Mutex mu_;
  std::map<Key, Tensor> inbox_ COHORT_GUARDED_BY(mu_);
  std::vector<Sender> early_senders_ COHORT_GUARDED_BY(mu_);  // of messages that have come before Start
  std::vector<ScheduleMismatch> mismatches_ COHORT_GUARDED_BY(mu_);
  bool started_ COHORT_GUARDED_BY(mu_) = false;
  bool running_ COHORT_GUARDED_BY(mu_) = false;  // a thread runs steps, or is about to
  bool ended_ COHORT_GUARDED_BY(mu_) = false;
  Status failed_ COHORT_GUARDED_BY(mu_);
  size_t next_step_ COHORT_GUARDED_BY(mu_) = 0;
  uint64_t messages_ COHORT_GUARDED_BY(mu_) = 0;  // that have come

  // Set by Start, then used only by the thread that has set running_. But after Start has set them, other threads may
  // read the call's name, signature and schedule fingerprint, and plan_, because these do not change any more.
  CollectiveCall call_;
  std::shared_ptr<const Plan> plan_;
  bool large_ = false;
  Tensor output_;
  Tensor scratch_;
};

}  // namespace cohort::collective
