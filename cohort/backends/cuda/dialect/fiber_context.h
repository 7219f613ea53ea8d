// FiberContext: a place in the program at which a fiber, or the thread that runs fibers, goes on. Internal to
// backends/cuda/dialect.
//
// swapcontext makes two system calls for each change, for the mask of signals, which fibers do not change. So on x86-64
// a fiber begins by setcontext, and all later changes are jumps, which take a few nanoseconds. Sanitizers know only
// swapcontext.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/fiber_sanitizers.h"

#if defined(__x86_64__) && !defined(COHORT_FIBERS_ASAN) && !defined(COHORT_FIBERS_TSAN)
#define COHORT_FIBERS_JUMP
#endif

namespace cohort::cuda {

// The owner of the stack has it. Only one thread uses it.
class FiberContext {
 public:
  // Makes a context that begins with main(argument), on this stack. `main` must not return.
  void Begin(void* stack, size_t bytes, void (*main)(void* argument), void* argument) {
    main_ = main;
    argument_ = argument;
    (void)getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&context_, reinterpret_cast<void (*)()>(&Enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
    fresh_ = true;
  }

  // Leaves this context, which is the running one, for `to`. Returns when another context leaves for this one.
#if defined(COHORT_FIBERS_JUMP)
  __attribute__((noinline)) void LeaveFor(FiberContext& to) {
    if (__builtin_setjmp(jump_) == 0) to.Resume();
  }
#else
  __attribute__((always_inline)) void LeaveFor(FiberContext& to) { (void)swapcontext(&context_, &to.context_); }
#endif

 private:
  static void Enter(unsigned high, unsigned low) {
    auto& self = *reinterpret_cast<FiberContext*>((static_cast<uintptr_t>(high) << 32) | low);
    self.main_(self.argument_);
  }
#if defined(COHORT_FIBERS_JUMP)
  [[noreturn]] __attribute__((noinline)) void Resume() {
    if (fresh_) {
      fresh_ = false;
      (void)setcontext(&context_);
    }
    __builtin_longjmp(jump_, 1);
  }
  void* jump_[5] = {};
#endif

  bool fresh_ = false;
  ucontext_t context_;
  void (*main_)(void* argument) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace cohort::cuda
