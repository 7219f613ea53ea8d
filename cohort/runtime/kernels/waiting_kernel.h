// WaitingKernel: the base of kernels that say what their wait means.
#pragma once

#include "cohort/device/kernel.h"
#include "cohort/runtime/wait_kind.h"

namespace cohort {

// Says what the waits of a kernel are. A kernel that does not implement it waits for kWork.
class ClassifiedWait {
 public:
  virtual ~ClassifiedWait() = default;
  virtual WaitKind wait_kind() const = 0;
};

template <WaitKind kind>
class WaitingKernel : public AsyncOpKernel, public ClassifiedWait {
 public:
  WaitKind wait_kind() const final { return kind; }
};

// Returns the kind of the waits of `kernel`. It takes longer than a virtual call, so it is not for the path of a step.
inline WaitKind WaitKindOf(const AsyncOpKernel& kernel) {
  const auto* classified = dynamic_cast<const ClassifiedWait*>(&kernel);
  return classified == nullptr ? WaitKind::kWork : classified->wait_kind();
}

}  // namespace cohort
