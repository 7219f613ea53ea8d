// TurnCall: one member's part in one collective that a library runs in a turn. Internal to the engines of such
// libraries.
#pragma once

#include <functional>
#include <string>

#include "cohort/collective/call.h"
#include "cohort/collective/member_list.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// A call and its stage. A call has begun when the member calls. It has its turn when rank 0 has found that all members
// have begun the collective. Then it runs on the thread of a lane, and then it has ended. The TurnOrder and a lane
// share ownership of it. Thread-safe.
class TurnCall final : public UnfinishedCollective {
 public:
  // `members` must outlive the call. `library` is the library's name for messages.
  TurnCall(const MemberList& members, const char* library, CollectiveCall call)
      : members_(members),
        library_(library),
        rank_(call.rank),
        id_(call.id),
        signature_(call.signature),
        name_(call.name),
        schedule_fingerprint_(call.schedule_fingerprint),
        call_(std::move(call)) {}

  int rank() const { return rank_; }
  const CallId& id() const { return id_; }
  std::string name() const override { return name_; }
  const CallSignature& signature() const { return signature_; }
  uint64_t schedule_fingerprint() const { return schedule_fingerprint_; }

  // Call it when all members have begun the collective. Returns false if this call already has a turn or has ended.
  bool SetTurn() COHORT_EXCLUDES(mu_);
  // Returns whether the call waits for its turn.
  bool waits_for_turn() const COHORT_EXCLUDES(mu_);
  // Returns the rank for which the library waits, or -1. Called on any thread, with the call's lock held.
  using WaitsFor = std::function<int()>;
  // Runs `work` with the call on this thread and returns true. If the call has ended, only returns false. From the
  // start of `work` until End, Fail does nothing. While `work` runs, DescribeWait names the member of `waits_for`.
  bool Run(const WaitsFor& waits_for, const std::function<void(CollectiveCall&)>& work) COHORT_EXCLUDES(mu_);
  // Moves the call to `*call`. The caller ends it, and this object counts as ended. Returns false and does nothing if
  // the call runs or has ended.
  bool Take(CollectiveCall* call) COHORT_EXCLUDES(mu_);
  // Ends the call with `why`, unless it runs or has ended.
  void Fail(const Status& why) COHORT_EXCLUDES(mu_);
  // Ends the call with the outcome of `work`, unless the call has ended. Requires: Run has returned true.
  void End(const Status& status, Tensor result) COHORT_EXCLUDES(mu_);

  std::string Describe() const override { return DescribeCall(name_, id_, signature_); }
  std::string DescribeWait() const override COHORT_EXCLUDES(mu_);
  // While the library runs the call, the engine has a limit of its own.
  std::optional<uint64_t> Stamp() const override COHORT_EXCLUDES(mu_);
  std::vector<int> AwaitedRanks() const override COHORT_EXCLUDES(mu_);

 private:
  enum class Stage { kBegun, kHasTurn, kRuns, kEnded };

  const MemberList& members_;
  const char* const library_;
  const int rank_;
  const CallId id_;
  const CallSignature signature_;
  const std::string name_;
  const uint64_t schedule_fingerprint_;

  mutable Mutex mu_;
  Stage stage_ COHORT_GUARDED_BY(mu_) = Stage::kBegun;
  const WaitsFor* waits_for_ COHORT_GUARDED_BY(mu_) = nullptr;  // set while the call runs
  CollectiveCall call_;                                         // used only by the thread that has set kRuns or kEnded
};

}  // namespace cohort::collective
