// UpdateTable: the updates of many variables as one launch, for kernels. Files *.cu include it.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// At most kMost updates. A block of threads works on kOfBlock elements of one update; a table says at which block each
// update begins. A kernel has it as a member, and begins as `Kernel{}`: all bytes are 0.
template <typename Update, int kMost, int64_t kOfBlock>
struct UpdateTable {
  int count;
  int64_t first_blocks[kMost + 1];  // of each update; at the end the number of blocks
  int64_t elements[kMost];
  Update updates[kMost];

  // Adds an update of so many elements: nothing if there are none. Requires: less than kMost were added.
  void Add(const Update& update, int64_t its_elements) {
    if (its_elements == 0) return;
    const int at = count++;
    updates[at] = update;
    elements[at] = its_elements;
    first_blocks[at + 1] = first_blocks[at] + (its_elements + kOfBlock - 1) / kOfBlock;
  }

  // Requires: there are updates.
  LaunchSize Size() const {
    constexpr int64_t kMostBlocks = 65535;
    const int64_t blocks = first_blocks[count];
    LaunchSize size;
    size.threads[0] = 256;
    size.blocks[0] = static_cast<uint32_t>(blocks < kMostBlocks ? blocks : kMostBlocks);
    return size;
  }

  // Calls fn(update, element) for the elements of all updates that belong to this thread.
  template <typename Fn>
  COHORT_KERNEL void ForElements(const Thread& t, const Fn& fn) const {
    for (int64_t block = t.block(); block < first_blocks[count]; block += t.blocks()) {
      int which = 0;
      for (int high = count - 1; which < high;) {
        const int middle = (which + high + 1) / 2;
        if (first_blocks[middle] <= block) {
          which = middle;
        } else {
          high = middle - 1;
        }
      }
      const int64_t begin = (block - first_blocks[which]) * kOfBlock;
      const int64_t end = begin + kOfBlock < elements[which] ? begin + kOfBlock : elements[which];
      for (int64_t i = begin + t.thread(); i < end; i += t.threads()) fn(updates[which], i);
    }
  }
};

}  // namespace cohort::cuda
