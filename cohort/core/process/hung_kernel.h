// HungKernel: says that a kernel of this process does not return.
#pragma once

#include <atomic>

namespace cohort {

// Exists as long as a kernel of this process has not returned although its step was given up. The ProgressWatch of a
// session owns it, or the step. Nothing can end such a kernel but the end of the process, and the process cannot end in
// good order. So a process with a HungKernel does not answer the launcher's questions for its health, and the launcher
// ends it (`--unhealthy_after`). Thread-safe.
class HungKernel {
 public:
  HungKernel() { ++count_; }
  ~HungKernel() { --count_; }
  HungKernel(const HungKernel&) = delete;
  HungKernel& operator=(const HungKernel&) = delete;

  static bool Any() { return count_ > 0; }

 private:
  static inline std::atomic<int> count_{0};
};

}  // namespace cohort
