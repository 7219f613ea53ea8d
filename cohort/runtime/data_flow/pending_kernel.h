// PendingKernel: a kernel that waits in a resource, such as a queue, until another step lets it go on.
#pragma once

#include <cstdint>
#include <functional>
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

}  // namespace cohort
