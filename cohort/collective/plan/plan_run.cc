// How a plan runs. Start and each message that comes ask whether the next step is possible (CanAdvance). If it is and
// no other thread runs steps, the thread that asked sets running_ and runs steps until one has to wait (Advance), or
// lets a worker thread do so if there is much to compute. When all steps have run and no schedule is left to compare,
// End gives the result to the caller. A failure is recorded in failed_, and the thread that runs steps ends the run
// with it.
#include "cohort/collective/plan/plan_run.h"

#include <algorithm>
#include <cstring>

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
  MutexLock lock(mu_);
  running_ = false;
  if (!CanAdvance()) return;
  running_ = true;
  host_.RunOnWorker([self = shared_from_this()] { self->Advance(); });
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

void PlanRun::PrepareMemory() {
  const CallSignature& what = call_.signature;
  if (what.kind == CallKind::kBarrier) return;
  const bool is_root = what.kind == CallKind::kBroadcast && what.root == rank_;
  const bool same_memory = plan_->in_place && plan_->input_count == plan_->output_count &&
                           (what.kind == CallKind::kAllReduce || what.kind == CallKind::kBroadcast);
  if (is_root || host_.members().size() == 1 || (same_memory && call_.input.OwnsBufferAlone())) {
    output_ = call_.input.Reshaped(call_.output_shape);
  } else {
    output_ = Tensor(what.dtype, call_.output_shape);
  }
  if (plan_->scratch_count > 0) {
    scratch_ = Tensor(TypeIn(PlanBuffer::kScratch), Shape{plan_->scratch_count});
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
  const bool needs_message = step.kind == StepKind::kReceive || step.kind == StepKind::kReduce;
  return !needs_message || inbox_.count({step.peer, step.sequence}) > 0;
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
        if (found != inbox_.end() && step->kind != StepKind::kSend) {
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
    if (!started_ || ended_ || running_) return;
    for (const ScheduleMismatch& mismatch : mismatches_) awaited.push_back(mismatch.peer);
    if (next_step_ < plan_->steps.size()) {
      const PlanStep& step = plan_->steps[next_step_];
      if (inbox_.count({step.peer, step.sequence}) == 0) awaited.push_back(step.peer);
    }
  }
  for (const int member : awaited) {
    const Status gone = host_.WhyGone(member);
    if (!gone.ok()) return host_.Fail(gone);
  }
}

void PlanRun::Execute(const PlanStep& step, Tensor received) {
  switch (step.kind) {
    case StepKind::kSend:
      return host_.Post({{}, id_, rank_, step.peer, step.sequence, call_.signature, call_.schedule_fingerprint},
                        View(step.from, step.count));
    case StepKind::kCopy:
      if (Address(step.to) != Address(step.from)) {
        std::memcpy(Address(step.to), Address(step.from),
                    static_cast<size_t>(step.count) * DTypeSize(call_.signature.dtype));
      }
      return;
    case StepKind::kReceive:
    case StepKind::kReduce: break;
  }
  if (received.num_elements() != step.count) {
    throw InternalError(StrCat("[collective] expected ", step.count, " elements from ",
                               host_.members().DescribeRank(step.peer), "; got ", received.num_elements(), " in ",
                               Describe()));
  }
  if (step.count == 0) return;
  if (step.kind == StepKind::kReduce) return Reduce(step, received);
  if (received.dtype() != call_.signature.dtype) {
    throw InternalError(StrCat("[collective] expected ", call_.signature.dtype, " from ",
                               host_.members().DescribeRank(step.peer), "; got ", received.dtype(), " in ",
                               Describe()));
  }
  std::memcpy(Address(step.to), received.raw_data(), received.bytes());
}

void PlanRun::Reduce(const PlanStep& step, const Tensor& received) {
  const ReduceOp wanted = call_.signature.op;
  const ReduceOp op = wanted == ReduceOp::kMean && !step.final ? ReduceOp::kSum : wanted;
  const DType own_type = TypeIn(step.from.buffer);
  // The lower rank's operand is the left one, so that both members of a pair compute the same bits.
  const bool own_left = rank_ < step.peer;
  const ReduceFn reduce = reductions_.find(op, call_.signature.dtype, own_left ? own_type : received.dtype(),
                                           own_left ? received.dtype() : own_type, TypeIn(step.to.buffer));
  const void* own = Address(step.from);
  reduce(own_left ? own : received.raw_data(), own_left ? received.raw_data() : own, Address(step.to), step.count,
         host_.members().size());
}

DType PlanRun::TypeIn(PlanBuffer buffer) const {
  return buffer == PlanBuffer::kScratch ? reductions_.accumulator_of(call_.signature.dtype) : call_.signature.dtype;
}

const Tensor& PlanRun::TensorOf(PlanBuffer buffer) const {
  return buffer == PlanBuffer::kInput ? call_.input : buffer == PlanBuffer::kOutput ? output_ : scratch_;
}

char* PlanRun::Address(const BufferOffset& place) const {
  // A const tensor gives its bytes as const. The plan decides which of them are written.
  return static_cast<char*>(const_cast<void*>(TensorOf(place.buffer).raw_data())) +
         static_cast<size_t>(place.begin) * DTypeSize(TypeIn(place.buffer));
}

Tensor PlanRun::View(const BufferOffset& place, int64_t count) const {
  if (count == 0) return Tensor(DType::kUint8, Shape{0});
  const Tensor& tensor = TensorOf(place.buffer);
  const auto offset = static_cast<size_t>(Address(place) - static_cast<char*>(tensor.buffer()->data()));
  return Tensor(TypeIn(place.buffer), Shape{count}, tensor.buffer(), offset);
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
