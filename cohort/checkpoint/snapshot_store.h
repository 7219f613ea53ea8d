// SnapshotStore: keeps the snapshots of a task's variables while checkpoints are written, and runs slow checkpoint
// kernels on threads of its own. Internal.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/core/thread_pool.h"
#include "cohort/device/device.h"

namespace cohort {

// The values of some variables of a task at one point in time.
struct Snapshot {
  // The tensors of the checkpoint. slices[i] says which part of names[i] a value is, as for SaveV2; "": the whole.
  std::vector<std::string> names;
  std::vector<std::string> slices;
  // values[i] is the value of the variable that is stored as names[i], in host memory. If a variable is in host memory
  // too, its value here may share the variable's buffer. The buffer is not changed then: an update of the variable uses
  // a new one.
  std::vector<Tensor> values;
};

// Each task has one store. The task's ResourceManager owns it. The first call of Of makes it. Thread-safe.
class SnapshotStore final : public Resource {
 public:
  // If a program dies, it cannot drop its snapshot. So Put frees the snapshots for which Find was not called for this
  // long.
  static constexpr std::chrono::minutes kIdleLimit{10};

  // Returns the store of the task to which `device` belongs.
  static std::shared_ptr<SnapshotStore> Of(Device& device);

  // Keeps the snapshot and returns its number, which is never 0.
  int64_t Put(Snapshot snapshot);
  // Returns the snapshot. Throws NotFoundError if there is none with this number.
  std::shared_ptr<const Snapshot> Find(int64_t id);
  // Frees the snapshot, if there is one with this number.
  void Drop(int64_t id);
  size_t size() const;

  // Runs `closure` later, on one of the two threads of the store, so that threads which run plans are not blocked.
  // `closure` must not throw.
  void Schedule(std::function<void()> closure) { threads_.Schedule(std::move(closure)); }
  std::string Describe() const override { return "the task's snapshots"; }

 private:
  struct Kept {
    std::shared_ptr<const Snapshot> snapshot;
    std::chrono::steady_clock::time_point last_use;
  };
  mutable Mutex mu_;
  int64_t next_id_ COHORT_GUARDED_BY(mu_) = 1;
  std::map<int64_t, Kept> kept_ COHORT_GUARDED_BY(mu_);
  ThreadPool threads_{"checkpoint", 2};  // last: its threads end before the other members are destroyed
};

}  // namespace cohort
