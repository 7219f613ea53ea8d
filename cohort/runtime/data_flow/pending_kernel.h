// PendingKernel: a kernel that waits in a resource, such as a queue, until another step lets it go on. TakeOut and
// WatchLast: for the lists in which resources keep such kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "cohort/device/kernel.h"

namespace cohort {

// The execution of an AsyncOpKernel that has not called its `done` yet. The resource in which it waits owns it. Not
// thread-safe: the lock of the resource guards it until it is taken out of the resource's list to be ended. So it is
// ended exactly once, whoever comes first: the resource or the cancellation of the step.
class PendingKernel {
 public:
  PendingKernel(KernelContext& ctx, AsyncOpKernel::Done done) : ctx_(&ctx), done_(std::move(done)) {}

  // Makes the cancellation of the step call `callback` once, unless End is called before. Returns false if the step is
  // cancelled already; `callback` is then never called. The caller may hold the lock of the resource, which `callback`
  // may take, too. `callback` must find the kernel in the resource's list, or do nothing.
  bool CallIfCancelled(std::function<void(const Status&)> callback) {
    CancellationManager* const manager = ctx_->step().cancellation;
    if (manager == nullptr) return true;
    token_ = manager->Register(std::move(callback));
    return token_ != CancellationManager::kAlreadyCancelled;
  }
  // Returns why the step was cancelled. Requires: CallIfCancelled has returned false.
  Status WhyCancelled() const { return ctx_->step().cancellation->status(); }
  // Returns the number of the step in its session.
  int64_t step() const { return ctx_->step().step_id; }
  // Returns the session of the step, or 0 if the step has none.
  uint64_t session() const {
    const StepOrigin* const origin = ctx_->step().origin;
    return origin == nullptr ? 0 : origin->session;
  }

  // Ends the kernel. If `status` is OK, `set_outputs` first sets the outputs; the kernel fails with the error that it
  // throws. The step may continue on this thread, so the caller must hold no lock, and must expect that the resource is
  // destroyed meanwhile.
  void End(const Status& status, const std::function<void(KernelContext&)>& set_outputs = nullptr) {
    if (token_ != CancellationManager::kAlreadyCancelled) ctx_->step().cancellation->Deregister(token_);
    Status outcome = status;
    try {
      if (outcome.ok() && set_outputs) set_outputs(*ctx_);
    } catch (...) {
      outcome = Status::FromCurrentException();
    }
    const AsyncOpKernel::Done done = std::move(done_);
    done(outcome);
  }

 private:
  KernelContext* ctx_;
  AsyncOpKernel::Done done_;
  CancellationManager::Token token_ = CancellationManager::kAlreadyCancelled;
};

// The functions below work on a list of kernels that wait. An entry has at least a PendingKernel `kernel`, and a number
// `id` that no other entry of the resource has. The lock of the resource guards the list.

// Removes the entry from the list and returns it, or nullopt if there is none.
template <typename Waiting>
std::optional<Waiting> TakeOut(std::deque<Waiting>& list, uint64_t id) {
  const auto found = std::find_if(list.begin(), list.end(), [id](const Waiting& entry) { return entry.id == id; });
  if (found == list.end()) return std::nullopt;
  std::optional<Waiting> taken(std::move(*found));
  list.erase(found);
  return taken;
}

// To be called after the entry `id` was added at the end of the list and the list was served. If the entry is still
// there, makes the cancellation of its step call `cancel(why)`, which takes the lock, and so finds the entry in the
// list. If the step is cancelled already, removes the entry and returns it.
template <typename Waiting>
std::optional<Waiting> WatchLast(std::deque<Waiting>& list, uint64_t id, std::function<void(const Status&)> cancel) {
  if (list.empty() || list.back().id != id) return std::nullopt;
  if (list.back().kernel.CallIfCancelled(std::move(cancel))) return std::nullopt;
  return TakeOut(list, id);
}

}  // namespace cohort
