// WaitKind: what the wait of a kernel means.
#pragma once

#include <cstdint>

namespace cohort {

// What a kernel waits for. The limit without progress (SessionConfig::progress_limit) depends on it: a step is late
// only if something works for it and does not end, or if all that it waits for is late.
enum class WaitKind : uint8_t {
  kWork,        // something works for the kernel on another thread: input data, a file, the device
  kValue,       // a value that another partition sends
  kCall,        // a function whose nodes run
  kCollective,  // the members of a group; the group has a limit of its own
  kOtherSteps,  // a queue, an accumulator, a step clock or a chief record: other steps end the wait, so it is not late
  kGate,        // a checkpoint has closed the update gate; for steps, not for kernels
};

}  // namespace cohort
