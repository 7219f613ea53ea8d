#include "cohort/runtime/execution/step_rendezvous.h"

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr size_t kHoldBelow = 64 * 1024;

// Flush must not find out later that a value cannot travel, because no node is there any more to fail with the error.
void CheckCanLeave(const Tensor& value, const std::string& name) {
  if (value.defined() && !IsHandle(value.dtype()) && value.space().is_host()) return;
  throw InvalidArgumentError(StrCat("[rendezvous] expected a value in host memory that can be sent to another task; '",
                                    name, "' is ", value.dtype(), value.shape(),
                                    "; place the nodes that use it on the same task"));
}

}  // namespace

StepRendezvous::StepRendezvous(const std::vector<EdgeRoute>& routes, int self) : routes_(routes), self_(self) {
  MutexLock lock(mu_);
  slots_.resize(routes.size());
}

void StepRendezvous::Reset(ValueSender* sender, int64_t step) {
  sender_ = sender;
  step_ = step;
  MutexLock lock(mu_);
  for (Slot& slot : slots_) {
    slot.value.Reset();
    slot.waiter = nullptr;
  }
  for (auto& [task, values] : held_) values.clear();
  aborted_ = Status();
}

void StepRendezvous::Send(EdgeId edge, const Tensor& value) {
  const int destination = routes_.at(static_cast<size_t>(edge)).dst_task;
  if (destination != self_) {
    CheckCanLeave(value, routes_[static_cast<size_t>(edge)].tensor_name);
    {
      MutexLock lock(mu_);
      if (!aborted_.ok()) return;
      if (value.bytes() < kHoldBelow) {
        for (auto& [task, values] : held_) {
          if (task == destination) {
            values.push_back({edge, value});
            return;
          }
        }
        held_.push_back({destination, {}});
        held_.back().second.push_back({edge, value});
        return;
      }
    }
    std::vector<EdgeValue> values;
    values.push_back({edge, value});
    sender_->SendValues(destination, step_, std::move(values));
    return;
  }
  Done waiter;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return;
    Slot& slot = slots_.at(static_cast<size_t>(edge));
    if (slot.value.defined()) {
      throw InternalError(StrCat("[rendezvous] '", routes_[static_cast<size_t>(edge)].tensor_name, "' was sent twice"));
    }
    slot.value = value;
    waiter = std::move(slot.waiter);
    slot.waiter = nullptr;
  }
  if (waiter) waiter(Status(), value);
}

void StepRendezvous::RecvAsync(EdgeId edge, Done done) {
  Tensor value;
  Status aborted;
  {
    MutexLock lock(mu_);
    Slot& slot = slots_.at(static_cast<size_t>(edge));
    aborted = aborted_;
    if (aborted.ok()) {
      if (!slot.value.defined()) {
        slot.waiter = std::move(done);
        return;
      }
      value = slot.value;
    }
  }
  done(aborted, value);
}

void StepRendezvous::Flush() {
  for (;;) {
    int destination = 0;
    std::vector<EdgeValue> values;
    {
      MutexLock lock(mu_);
      for (auto& [task, held] : held_) {
        if (!held.empty()) {
          destination = task;
          values = std::move(held);
          held.clear();
          break;
        }
      }
    }
    if (values.empty()) return;
    sender_->SendValues(destination, step_, std::move(values));
  }
}

void StepRendezvous::Abort(const Status& why) {
  std::vector<Done> waiters;
  {
    MutexLock lock(mu_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    for (Slot& slot : slots_) {
      if (slot.waiter) waiters.push_back(std::exchange(slot.waiter, nullptr));
    }
    for (auto& [task, values] : held_) values.clear();
  }
  for (const Done& waiter : waiters) waiter(why, Tensor());
}

std::vector<std::string> StepRendezvous::Awaited() {
  std::vector<std::string> names;
  MutexLock lock(mu_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].waiter) names.push_back(routes_[i].tensor_name);
  }
  return names;
}

}  // namespace cohort
