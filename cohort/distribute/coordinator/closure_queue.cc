#include "cohort/distribute/coordinator/closure_queue.h"

#include <algorithm>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort::distribute {

void ClosureQueue::CheckAlive() const {
  fatal_.ThrowIfError();
  if (stopped_) throw FailedPreconditionError("[coordinator] the coordinator has ended");
}

void ClosureQueue::ThrowError() {
  if (error_.ok()) return;
  while (!in_flight_.empty() && !stopped_) changed_.Wait(mu_);  // each closure in flight has an end
  const Status error = std::exchange(error_, Status());
  for (Slot& slot : slots_) slot.cancel = false;  // what it was for has ended
  error.ThrowIfError();
}

void ClosureQueue::Put(const ClosurePtr& closure) {
  MutexLock lock(mu_);
  while (true) {
    CheckAlive();
    ThrowError();
    if (queue_.size() < limit_) break;
    changed_.Wait(mu_);
  }
  closure->number = next_number_++;
  queue_.push_back(closure);
  WakeOne();
}

void ClosureQueue::AwaitIdle() {
  MutexLock lock(mu_);
  while (true) {
    CheckAlive();
    ThrowError();
    if (queue_.empty() && in_flight_.empty()) return;
    changed_.Wait(mu_);
  }
}

bool ClosureQueue::idle() {
  MutexLock lock(mu_);
  return queue_.empty() && in_flight_.empty() && error_.ok() && fatal_.ok();
}

void ClosureQueue::ExpectAlive() {
  MutexLock lock(mu_);
  CheckAlive();
}

bool ClosureQueue::MayRun(const Slot& slot) const {
  return !stopped_ && !slot.broken && !queue_.empty() && slot.in_flight < most_in_flight_;
}

ClosurePtr ClosureQueue::TakeFirst(Slot& slot) {
  ClosurePtr closure = std::move(queue_.front());
  queue_.pop_front();
  ++slot.in_flight;
  in_flight_.insert(closure->number);
  closure->cancels = cancels_;
  closure->lowest = *in_flight_.begin();  // the queue is in order, so that no closure in it has a smaller number
  if (queue_.size() + 1 == limit_) changed_.NotifyAll();
  return closure;
}

void ClosureQueue::WakeOne() {
  for (Slot& slot : slots_) {
    if (!slot.waits || !MayRun(slot)) continue;
    slot.waits = false;  // so that the next call wakes another one
    return slot.work.NotifyOne();
  }
}

void ClosureQueue::WakeAll() {
  for (Slot& slot : slots_) slot.work.NotifyOne();
}

ClosureQueue::Next ClosureQueue::Take(size_t worker, ClosurePtr* closure) {
  MutexLock lock(mu_);
  Slot& slot = slots_[worker];
  while (!stopped_ && !slot.broken && !slot.cancel && !MayRun(slot)) {
    slot.waits = true;
    slot.work.Wait(mu_);
    slot.waits = false;
  }
  if (stopped_) return Next::kStop;
  if (std::exchange(slot.cancel, false)) return Next::kCancel;
  if (slot.broken) return Next::kRecover;
  *closure = TakeFirst(slot);
  if (!queue_.empty()) WakeOne();
  return Next::kRun;
}

void ClosureQueue::TakeOff(size_t worker, const Closure& closure) {
  --slots_[worker].in_flight;
  in_flight_.erase(closure.number);
  if (in_flight_.empty()) changed_.NotifyAll();
}

void ClosureQueue::CancelQueued(const std::string& why) {
  for (const ClosurePtr& closure : queue_) closure->result->Abort(why);
  queue_.clear();
}

void ClosureQueue::CancelInFlight(const Status& why) {
  why_cancelled_ = why;
  ++cancels_;
  for (Slot& slot : slots_) slot.cancel = slot.in_flight > 0;
  WakeAll();
}

ClosurePtr ClosureQueue::Finish(size_t worker, const ClosurePtr& closure, const Status& status, RunResults results,
                                const ClosureFunction* ready) {
  if (status.ok()) closure->result->SetValues(std::move(results));
  MutexLock lock(mu_);
  if (!status.ok()) {
    const bool cancelled = status.code() == Code::kCancelled && !(error_.ok() && fatal_.ok());
    cancelled ? closure->result->Abort(why_cancelled_.message()) : closure->result->SetError(status);
  }
  if (!status.ok() && error_.ok() && fatal_.ok()) {
    const std::string told = StrCat(
        status.message(), " (closure ", closure->number, " of function '", closure->function->name(), "'; ",
        queue_.size(), " closures that had not started were cancelled, and ", in_flight_.size() - 1, " that ran)");
    error_ = Status(status.code(), told);
    const std::string why = StrCat("[coordinator] the closure was cancelled, because another one failed: ", told);
    CancelQueued(why);
    CancelInFlight(Status(Code::kCancelled, why));
  }
  TakeOff(worker, *closure);
  Slot& slot = slots_[worker];
  if (ready != nullptr && MayRun(slot) && queue_.front()->function.get() == ready) return TakeFirst(slot);
  WakeOne();
  return nullptr;
}

void ClosureQueue::Started(size_t worker, const ClosurePtr& closure) {
  MutexLock lock(mu_);
  // If the closure has ended, the thread must not cancel those that came after it.
  if (closure->cancels == cancels_ || !in_flight_.contains(closure->number)) return;
  slots_[worker].cancel = true;
  slots_[worker].work.NotifyOne();
}

void ClosureQueue::Return(size_t worker, const ClosurePtr& closure, const Status& why) {
  MutexLock lock(mu_);
  Slot& slot = slots_[worker];
  if (!slot.broken) {
    slot.broken = true;
    slot.why = why;
  }
  if (stopped_ || !error_.ok() || !fatal_.ok()) {
    closure->result->Abort(
        StrCat("[coordinator] the closure was cancelled after its worker had failed: ", why.message()));
  } else {
    const auto place = std::find_if(queue_.begin(), queue_.end(),
                                    [&](const ClosurePtr& queued) { return queued->number > closure->number; });
    queue_.insert(place, closure);
  }
  TakeOff(worker, *closure);
  slot.work.NotifyOne();
  WakeOne();
}

void ClosureQueue::Break(size_t worker, const Status& why) {
  MutexLock lock(mu_);
  if (slots_[worker].broken) return;
  slots_[worker].broken = true;
  slots_[worker].why = why;
  slots_[worker].work.NotifyOne();
}

void ClosureQueue::Repaired(size_t worker) {
  MutexLock lock(mu_);
  slots_[worker].broken = false;
  slots_[worker].why = Status();
}

Status ClosureQueue::why_cancelled() {
  MutexLock lock(mu_);
  return why_cancelled_;
}

Status ClosureQueue::why_broken(size_t worker) {
  MutexLock lock(mu_);
  return slots_[worker].why;
}

bool ClosureQueue::Pause(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  MutexLock lock(mu_);
  while (!stopped_ && stopping_.WaitUntil(mu_, deadline)) {
  }
  return !stopped_;
}

void ClosureQueue::Fail(const Status& why) {
  MutexLock lock(mu_);
  if (fatal_.ok()) fatal_ = why;
  const std::string told = StrCat("[coordinator] the closure was cancelled: ", why.message());
  CancelQueued(told);
  CancelInFlight(Status(Code::kCancelled, told));
  changed_.NotifyAll();
}

void ClosureQueue::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  CancelQueued("[coordinator] the closure was cancelled, because the coordinator has ended");
  changed_.NotifyAll();
  stopping_.NotifyAll();
  WakeAll();
}

}  // namespace cohort::distribute
