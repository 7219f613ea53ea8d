// How a plan runs. Start and each message that comes ask whether the next step is possible (CanAdvance). If it is and
// no other thread runs steps, the thread that asked sets running_ and runs steps until one has to wait (Advance), or
// lets a worker thread do so if there is much to compute. When all steps have run and no schedule is left to compare,
// End gives the result to the caller. A failure is recorded in failed_, and the thread that runs steps ends the run
// with it. What a single step does with memory is in plan_run_steps.cc.
#include "cohort/collective/plan/plan_run.h"

#include <algorithm>

#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// From this size of tensor on, the calling thread does not compute. But a network thread computes on a message up to
// the second size: that takes some tens of microseconds, as long as it takes to wake another thread.
constexpr size_t kLargeBytes = 128 * 1024;
constexpr size_t kLargeMessageBytes = 1024 * 1024 + 1;

}  // namespace

std::string PlanRun::DescribeLocked() const {
  if (started_) return DescribeCall(call_.name, id_, call_.signature);
  return StrCat("the collective (instance ", id_.instance, ", round ", id_.round, ")");
}

std::string PlanRun::Describe() const {
  MutexLock lock(mu_);
  return DescribeLocked();
}

std::string PlanRun::DescribeWait() const {
  MutexLock lock(mu_);
  if (!started_ || ended_) return "";
  const MemberList& members = host_.members();
  if (next_step_ >= plan_->steps.size()) {
    return mismatches_.empty() ? "is about to end"
                               : StrCat("waits for the schedule of ", members.DescribeRank(mismatches_.front().peer));
  }
  const PlanStep& step = plan_->steps[next_step_];
  return StrCat(running_ || step.peer < 0 ? "is at" : StrCat("waits for ", members.DescribeRank(step.peer), " at"),
                " step ", next_step_ + 1, " of ", plan_->steps.size());
}

std::string PlanRun::name() const {
  MutexLock lock(mu_);
  return started_ ? call_.name : "";
}

std::optional<uint64_t> PlanRun::Stamp() const {
  MutexLock lock(mu_);
  return next_step_ + messages_;
}

std::vector<int> PlanRun::AwaitedRanks() const {
  MutexLock lock(mu_);
  return AwaitedLocked();
}

std::vector<int> PlanRun::AwaitedLocked() const {
  std::vector<int> awaited;
  if (!started_ || ended_ || running_) return awaited;
  for (const ScheduleMismatch& mismatch : mismatches_) awaited.push_back(mismatch.peer);
  if (next_step_ < plan_->steps.size()) {
    const PlanStep& step = plan_->steps[next_step_];
    if (step.NeedsMessage() && inbox_.count({step.peer, step.sequence}) == 0) awaited.push_back(step.peer);
  }
  return awaited;
}

void PlanRun::FailGroup(const Status& why) {
  host_.Fail(why);
  Fail(why);  // the group may be failing for another reason that has not reached this run
}

Status PlanRun::Compare(const Sender& theirs, bool* deferred) {
  Status different;
  if (!(call_.signature == theirs.signature)) {
    different = SignatureMismatch(DescribeLocked(), host_.members().DescribeRank(rank_),
                                  host_.members().DescribeRank(theirs.rank), theirs.signature);
  }
  const uint64_t own = call_.schedule_fingerprint;
  if (theirs.schedule_fingerprint == own || theirs.schedule_fingerprint == 0 || own == 0) return different;
  const auto known = std::find_if(mismatches_.begin(), mismatches_.end(), [&](const ScheduleMismatch& mismatch) {
    return mismatch.peer == theirs.rank && mismatch.schedule_fingerprint == theirs.schedule_fingerprint &&
           mismatch.different.ok() == different.ok();
  });
  if (known == mismatches_.end()) mismatches_.push_back({theirs.rank, theirs.schedule_fingerprint, different});
  *deferred = !different.ok();
  return {};
}

void PlanRun::Start(CollectiveCall call, std::shared_ptr<const Plan> plan) {
  Status different;
  {
    MutexLock lock(mu_);
    call_ = std::move(call);
    plan_ = std::move(plan);
    large_ = call_.input.bytes() >= kLargeBytes;
    started_ = true;
    running_ = true;  // no other thread may run steps before the memory is allocated
    for (const Sender& sender : early_senders_) {
      bool deferred = false;
      if (different.ok()) different = Compare(sender, &deferred);
      if (deferred) std::erase_if(inbox_, [&](const auto& message) { return message.first.first == sender.rank; });
    }
    early_senders_.clear();
  }
  if (!different.ok()) FailGroup(different);
  SettleMismatches();
  try {
    PrepareMemory();
  } catch (...) {
    FailGroup(Status::FromCurrentException());
  }
  if (!large_) return Advance();
  SendFirst();
  {
    MutexLock lock(mu_);
    running_ = false;
  }
  AdvanceSomewhere(false);
}

void PlanRun::SendFirst() {
  for (;;) {
    const PlanStep* step = nullptr;
    {
      MutexLock lock(mu_);
      if (!failed_.ok() || next_step_ >= plan_->steps.size()) return;
      step = &plan_->steps[next_step_];
    }
    if (step->kind != StepKind::kSend) return;
    try {
      Execute(*step, {});
    } catch (...) {
      return FailGroup(Status::FromCurrentException());
    }
    MutexLock lock(mu_);
    ++next_step_;
  }
}

void PlanRun::Deliver(const DataMessage& message, Tensor tensor, bool may_compute_inline) {
  may_compute_inline = may_compute_inline && tensor.bytes() < kLargeMessageBytes;
  const Sender sender = {message.from, message.signature, message.schedule_fingerprint};
  Status different;
  bool deferred = false;
  {
    MutexLock lock(mu_);
    if (ended_ || !failed_.ok()) return;
    ++messages_;
    if (started_) {
      different = Compare(sender, &deferred);
    } else {
      early_senders_.push_back(sender);
    }
    if (different.ok() && !deferred) inbox_[{message.from, message.sequence}] = std::move(tensor);
  }
  if (!different.ok()) return FailGroup(different);
  SettleMismatches();
  AdvanceSomewhere(may_compute_inline);
}

void PlanRun::SettleMismatches() {
  std::vector<ScheduleMismatch> mismatches;
  {
    MutexLock lock(mu_);
    if (mismatches_.empty() || ended_) return;
    mismatches = mismatches_;
  }
  for (const ScheduleMismatch& mismatch : mismatches) {
    if (!host_.SchedulesAgree(rank_, call_.schedule_fingerprint, mismatch.peer, mismatch.schedule_fingerprint))
      continue;
    if (!mismatch.different.ok()) return FailGroup(mismatch.different);
    MutexLock lock(mu_);
    std::erase_if(mismatches_, [&](const ScheduleMismatch& other) {
      return other.peer == mismatch.peer && other.schedule_fingerprint == mismatch.schedule_fingerprint &&
             other.different.ok();
    });
  }
}

void PlanRun::CheckSchedules() {
  SettleMismatches();
  AdvanceSomewhere(false);
}

bool PlanRun::CanAdvance() const {
  if (!started_ || ended_ || running_) return false;
  if (!failed_.ok()) return true;
  if (next_step_ >= plan_->steps.size()) return mismatches_.empty();
  const PlanStep& step = plan_->steps[next_step_];
  return !step.NeedsMessage() || inbox_.count({step.peer, step.sequence}) > 0;
}

void PlanRun::AdvanceSomewhere(bool may_compute_inline) {
  {
    MutexLock lock(mu_);
    if (!CanAdvance()) return;
    running_ = true;
  }
  if (may_compute_inline || !large_) return Advance();
  host_.RunOnWorker([self = shared_from_this()] { self->Advance(); });
}

void PlanRun::Advance() {
  for (;;) {
    Status failed;
    Tensor received;
    const PlanStep* step = nullptr;
    {
      MutexLock lock(mu_);
      running_ = false;
      if (!CanAdvance()) break;
      running_ = true;
      failed = failed_;
      if (failed.ok() && next_step_ < plan_->steps.size()) {
        step = &plan_->steps[next_step_];
        const auto found = inbox_.find({step->peer, step->sequence});
        if (found != inbox_.end() && step->NeedsMessage()) {
          received = std::move(found->second);
          inbox_.erase(found);
        }
      }
    }
    if (step == nullptr) return End(failed);
    try {
      Execute(*step, std::move(received));
    } catch (...) {
      FailGroup(Status::FromCurrentException());
    }
    MutexLock lock(mu_);
    ++next_step_;
  }
  CheckPeers();
}

void PlanRun::CheckPeers() {
  std::vector<int> awaited;
  {
    MutexLock lock(mu_);
    awaited = AwaitedLocked();
  }
  for (const int member : awaited) {
    const Status gone = host_.WhyGone(member);
    if (!gone.ok()) return host_.Fail(gone);
  }
}

void PlanRun::Fail(const Status& why) {
  {
    MutexLock lock(mu_);
    if (ended_ || !failed_.ok()) return;
    failed_ = why;
    inbox_.clear();
    early_senders_.clear();
  }
  AdvanceSomewhere(false);
}

void PlanRun::End(const Status& status) {
  {
    MutexLock lock(mu_);
    ended_ = true;
    inbox_.clear();
  }
  on_end_();
  scratch_.Reset();
  Tensor result = std::move(output_);
  output_.Reset();
  EndCall(call_, host_.members(), status, std::move(result));
}

}  // namespace cohort::collective
