// FiberSanitizer: tells AddressSanitizer and ThreadSanitizer that a thread goes on with another stack. In builds
// without them it does nothing. Internal to backends/cuda/dialect.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define COHORT_FIBERS_ASAN
#elif defined(__SANITIZE_THREAD__)
#define COHORT_FIBERS_TSAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COHORT_FIBERS_ASAN
#elif __has_feature(thread_sanitizer)
#define COHORT_FIBERS_TSAN
#endif
#endif

#if defined(COHORT_FIBERS_ASAN)
#include <sanitizer/common_interface_defs.h>
#elif defined(COHORT_FIBERS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace cohort::cuda {

// What a sanitizer knows of one stack: that of a fiber, or that of a thread that runs fibers. The owner of the stack
// has it. Only the thread that uses the stack calls it.
//
// A change of stacks is: from.LeaveFor(to), the change itself, and then, on the new stack, to.Arrive(). Both are always
// inlined: ThreadSanitizer counts the calls on each stack, and a function must end on the stack on which it began.
class FiberSanitizer {
 public:
  FiberSanitizer() = default;
  // Returns the object for the calling thread's own stack.
  static FiberSanitizer OfThread() {
    FiberSanitizer made;
#if defined(COHORT_FIBERS_TSAN)
    made.fiber_ = __tsan_get_current_fiber();
#endif
    return made;
  }
  // Returns the object for a new fiber with this stack.
  static FiberSanitizer OfFiber([[maybe_unused]] void* stack, [[maybe_unused]] size_t bytes) {
    FiberSanitizer made;
#if defined(COHORT_FIBERS_ASAN)
    made.bottom_ = stack;
    made.bytes_ = bytes;
#elif defined(COHORT_FIBERS_TSAN)
    made.fiber_ = __tsan_create_fiber(0);
#endif
    return made;
  }
  // Requires: this is the object of a fiber that does not run.
  void Destroy() {
#if defined(COHORT_FIBERS_TSAN)
    __tsan_destroy_fiber(fiber_);
#endif
  }

  __attribute__((always_inline)) void LeaveFor([[maybe_unused]] FiberSanitizer& to) {
#if defined(COHORT_FIBERS_ASAN)
    to.came_from_ = this;
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
#elif defined(COHORT_FIBERS_TSAN)
    __tsan_switch_to_fiber(to.fiber_, 0);
#endif
  }
  __attribute__((always_inline)) void Arrive() {
#if defined(COHORT_FIBERS_ASAN)
    // AddressSanitizer says where the stack is that was left. A thread's own stack is known from nothing else.
    __sanitizer_finish_switch_fiber(fake_stack_, &came_from_->bottom_, &came_from_->bytes_);
#endif
  }

 private:
#if defined(COHORT_FIBERS_ASAN)
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  FiberSanitizer* came_from_ = nullptr;
#elif defined(COHORT_FIBERS_TSAN)
  void* fiber_ = nullptr;
#endif
};

}  // namespace cohort::cuda
