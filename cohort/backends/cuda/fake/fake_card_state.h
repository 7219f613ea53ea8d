// FakeCardState: one card of a FakeDriver. FakeControl owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

struct FakeCardState {
  mutable Mutex mu;
  CondVar changed;
  bool held COHORT_GUARDED_BY(mu) = false;
  bool graphs_held COHORT_GUARDED_BY(mu) = false;
  bool failed COHORT_GUARDED_BY(mu) = false;
  bool has_context COHORT_GUARDED_BY(mu) = false;
  CardFault fault COHORT_GUARDED_BY(mu) = CardFault::kOther;
  int64_t work_left COHORT_GUARDED_BY(mu) = 0;
  size_t used COHORT_GUARDED_BY(mu) = 0;
  std::map<void*, size_t> blocks COHORT_GUARDED_BY(mu);
  std::set<void (*)(const void*, const LaunchSize&)> loaded COHORT_GUARDED_BY(mu);  // kernels that it has loaded
  std::vector<std::shared_ptr<FakeDriver::Queue>> streams COHORT_GUARDED_BY(mu);

  // Called by a stream before a piece of work. Waits while the card is held. Returns whether the work may run.
  bool BeginWork(bool always) {
    MutexLock lock(mu);
    while (held) changed.Wait(mu);  // ends: whoever holds the card releases it
    if (always) return true;
    if (work_left > 0 && --work_left == 0) failed = true;
    return !failed;
  }
  // Called by a stream before a graph.
  void BeginGraph() {
    MutexLock lock(mu);
    while (graphs_held) changed.Wait(mu);  // ends: whoever holds the graphs releases them
  }
};

}  // namespace cohort::cuda
