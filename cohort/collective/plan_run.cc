#include "cohort/collective/plan_run.h"

#include <algorithm>
#include <cstring>

#include "cohort/backends/cpu/kernels/combine.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// A tensor of so much is not worked on by the thread that brings it; but a message of it is, from the network: some
// tens of microseconds, as long as it takes to wake another thread.
constexpr size_t kLargeBytes = 128 * 1024;
constexpr size_t kLargeMessageBytes = 1024 * 1024 + 1;

}  // namespace

std::string PlanRun::DescribeLocked() const {
  if (started_) return DescribeCall(job_.name, call_, job_.signature);
  return StrCat("the collective (instance ", call_.instance, ", round ", call_.round, ")");
}

std::string PlanRun::Describe() const {
  MutexLock lock(mu_);
  return DescribeLocked();
}

std::string PlanRun::DescribeWait() const {
  MutexLock lock(mu_);
  if (!started_ || ended_) return "";
  if (next_ >= job_.plan->steps.size()) {
    return doubts_.empty() ? "is about to end"
                           : StrCat("waits for the schedule of ", host_.DescribeRank(doubts_.front().from));
  }
  const PlanStep& step = job_.plan->steps[next_];
  return StrCat(running_ || step.peer < 0 ? "is at" : StrCat("waits for ", host_.DescribeRank(step.peer), " at"),
                " step ", next_ + 1, " of ", job_.plan->steps.size());
}

void PlanRun::FailGroup(const Status& why) {
  host_.Fail(why);
  Fail(why);  // the group may be failing for another reason, of which this run has not heard yet
}

Status PlanRun::Compare(const Early& theirs, bool* left) {
  Status different;
  if (!(job_.signature == theirs.signature)) {
    different =
        Disagreement(DescribeLocked(), host_.DescribeRank(rank_), host_.DescribeRank(theirs.from), theirs.signature);
  }
  if (theirs.schedule == job_.schedule || theirs.schedule == 0 || job_.schedule == 0) return different;
  const auto known = std::find_if(doubts_.begin(), doubts_.end(), [&](const Doubt& doubt) {
    return doubt.from == theirs.from && doubt.schedule == theirs.schedule && doubt.different.ok() == different.ok();
  });
  if (known == doubts_.end()) doubts_.push_back({theirs.from, theirs.schedule, different});
  *left = !different.ok();
  return {};
}

void PlanRun::Start(Job job) {
  Status different;
  {
    MutexLock lock(mu_);
    job_ = std::move(job);
    large_ = job_.input.bytes() >= kLargeBytes;
    started_ = true;
    running_ = true;  // nobody else pumps before the memory is there
    for (const Early& early : early_) {
      bool left = false;
      if (different.ok()) different = Compare(early, &left);
      if (left) std::erase_if(inbox_, [&](const auto& message) { return message.first.first == early.from; });
    }
    early_.clear();
  }
  if (!different.ok()) FailGroup(different);
  SettleDoubts();
  try {
    PrepareMemory();
  } catch (...) {
    FailGroup(Status::FromCurrentException());
  }
  if (!large_) return Pump();
  SendFirst();
  MutexLock lock(mu_);
  running_ = false;
  if (!CanMove()) return;
  running_ = true;
  host_.Schedule([self = shared_from_this()] { self->Pump(); });
}

void PlanRun::SendFirst() {
  for (;;) {
    const PlanStep* step = nullptr;
    {
      MutexLock lock(mu_);
      if (!failed_.ok() || next_ >= job_.plan->steps.size()) return;
      step = &job_.plan->steps[next_];
    }
    if (step->kind != StepKind::kSend) return;
    try {
      Execute(*step, {});
    } catch (...) {
      return FailGroup(Status::FromCurrentException());
    }
    MutexLock lock(mu_);
    ++next_;
  }
}

void PlanRun::PrepareMemory() {
  const Signature& what = job_.signature;
  if (what.kind == CallKind::kBarrier) return;
  const bool is_root = what.kind == CallKind::kBroadcast && what.root == rank_;
  const bool same_memory = job_.plan->in_place && job_.plan->input_count == job_.plan->output_count &&
                           (what.kind == CallKind::kAllReduce || what.kind == CallKind::kBroadcast);
  if (is_root || host_.size() == 1 || (same_memory && job_.input.OwnsBufferAlone())) {
    output_ = job_.input.Reshaped(job_.output_shape);
  } else {
    output_ = Tensor(what.dtype, job_.output_shape);
  }
  if (job_.plan->scratch_count > 0) {
    scratch_ = Tensor(TypeIn(Space::kScratch), Shape{job_.plan->scratch_count});
  }
}

void PlanRun::Deliver(int from, int32_t sequence, const Signature& signature, uint64_t schedule, Tensor tensor,
                      bool here) {
  here = here && tensor.bytes() < kLargeMessageBytes;
  Status different;
  bool left = false;
  {
    MutexLock lock(mu_);
    if (ended_ || !failed_.ok()) return;
    if (started_) {
      different = Compare({from, signature, schedule}, &left);
    } else {
      early_.push_back({from, signature, schedule});
    }
    if (different.ok() && !left) inbox_[{from, sequence}] = std::move(tensor);
  }
  if (!different.ok()) return FailGroup(different);
  SettleDoubts();
  PumpSomewhere(here);
}

void PlanRun::SettleDoubts() {
  std::vector<Doubt> doubts;
  uint64_t ours = 0;
  {
    MutexLock lock(mu_);
    if (doubts_.empty() || ended_) return;
    doubts = doubts_;
    ours = job_.schedule;
  }
  for (const Doubt& doubt : doubts) {
    if (!host_.Agree(rank_, ours, doubt.from, doubt.schedule)) continue;
    if (!doubt.different.ok()) return FailGroup(doubt.different);
    MutexLock lock(mu_);
    std::erase_if(doubts_, [&](const Doubt& other) {
      return other.from == doubt.from && other.schedule == doubt.schedule && other.different.ok();
    });
  }
}

void PlanRun::CheckSchedules() {
  SettleDoubts();
  PumpSomewhere(false);
}

bool PlanRun::CanMove() const {
  if (!started_ || ended_ || running_) return false;
  if (!failed_.ok()) return true;
  if (next_ >= job_.plan->steps.size()) return doubts_.empty();
  const PlanStep& step = job_.plan->steps[next_];
  const bool needs = step.kind == StepKind::kReceive || step.kind == StepKind::kReduce;
  return !needs || inbox_.count({step.peer, step.sequence}) > 0;
}

void PlanRun::PumpSomewhere(bool here) {
  {
    MutexLock lock(mu_);
    if (!CanMove()) return;
    running_ = true;
  }
  if (here || !large_) return Pump();
  host_.Schedule([self = shared_from_this()] { self->Pump(); });
}

// Entered with running_ set by the caller.
void PlanRun::Pump() {
  for (;;) {
    Status failed;
    Tensor received;
    const PlanStep* step = nullptr;
    {
      MutexLock lock(mu_);
      running_ = false;
      if (!CanMove()) break;
      running_ = true;
      failed = failed_;
      if (failed.ok() && next_ < job_.plan->steps.size()) {
        step = &job_.plan->steps[next_];
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
    ++next_;
  }
  CheckPeers();
}

void PlanRun::CheckPeers() {
  std::vector<int> awaited;
  {
    MutexLock lock(mu_);
    if (!started_ || ended_ || running_) return;
    for (const Doubt& doubt : doubts_) awaited.push_back(doubt.from);
    if (next_ < job_.plan->steps.size()) {
      const PlanStep& step = job_.plan->steps[next_];
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
      return host_.Post(rank_, step.peer, call_, step.sequence, job_.signature, job_.schedule,
                        View(step.from, step.count));
    case StepKind::kCopy:
      if (Address(step.to) != Address(step.from)) {
        std::memcpy(Address(step.to), Address(step.from),
                    static_cast<size_t>(step.count) * DTypeSize(job_.signature.dtype));
      }
      return;
    case StepKind::kReceive:
    case StepKind::kReduce: break;
  }
  if (received.num_elements() != step.count) {
    throw InternalError(StrCat("[collective] expected ", step.count, " elements from ", host_.DescribeRank(step.peer),
                               "; got ", received.num_elements(), " in ", Describe()));
  }
  if (step.count == 0) return;
  if (step.kind == StepKind::kReduce) return Reduce(step, received);
  if (received.dtype() != job_.signature.dtype) {
    throw InternalError(StrCat("[collective] expected ", job_.signature.dtype, " from ", host_.DescribeRank(step.peer),
                               "; got ", received.dtype(), " in ", Describe()));
  }
  std::memcpy(Address(step.to), received.raw_data(), received.bytes());
}

void PlanRun::Reduce(const PlanStep& step, const Tensor& received) {
  const ReduceOp wanted = job_.signature.op;
  const ReduceOp op = wanted == ReduceOp::kMean && !step.final ? ReduceOp::kSum : wanted;
  const DType own_type = TypeIn(step.from.space);
  // The lower rank's operand stands left, so that both of a pair compute the same bits.
  const bool own_left = rank_ < step.peer;
  const cpu::CombineFn combine = cpu::Combiner(op, job_.signature.dtype, own_left ? own_type : received.dtype(),
                                               own_left ? received.dtype() : own_type, TypeIn(step.to.space));
  const void* own = Address(step.from);
  combine(own_left ? own : received.raw_data(), own_left ? received.raw_data() : own, Address(step.to), step.count,
          host_.size());
}

DType PlanRun::TypeIn(Space space) const {
  return space == Space::kScratch ? cpu::AccumulatorOf(job_.signature.dtype) : job_.signature.dtype;
}

char* PlanRun::Address(const Place& place) const {
  const Tensor& tensor = place.space == Space::kInput ? job_.input : place.space == Space::kOutput ? output_ : scratch_;
  // Tensors hand out their bytes as const through a const tensor; who may write is the plan's matter.
  return static_cast<char*>(const_cast<void*>(tensor.raw_data())) +
         static_cast<size_t>(place.begin) * DTypeSize(TypeIn(place.space));
}

Tensor PlanRun::View(const Place& place, int64_t count) const {
  if (count == 0) return Tensor(DType::kUint8, Shape{0});
  const Tensor& tensor = place.space == Space::kInput ? job_.input : place.space == Space::kOutput ? output_ : scratch_;
  const auto offset = static_cast<size_t>(Address(place) - static_cast<char*>(tensor.buffer()->data()));
  return Tensor(TypeIn(place.space), Shape{count}, tensor.buffer(), offset);
}

void PlanRun::Fail(const Status& why) {
  {
    MutexLock lock(mu_);
    if (ended_ || !failed_.ok()) return;
    failed_ = why;
    inbox_.clear();
    early_.clear();
  }
  PumpSomewhere(false);
}

void PlanRun::End(const Status& status) {
  std::string what;
  {
    MutexLock lock(mu_);
    ended_ = true;
    inbox_.clear();
    what = DescribeLocked();
  }
  host_.Retire(rank_, call_);
  Communicator::Done done = std::move(job_.done);
  job_.input.Reset();
  scratch_.Reset();
  if (status.ok()) {
    done(Status(), std::move(output_));
  } else {
    output_.Reset();
    done(Status(status.code(),
                StrCat("[collective] ", what, " failed at ", host_.DescribeRank(rank_), ": ", status.message())),
         Tensor());
  }
}

}  // namespace cohort::collective
