// SnapshotStore: what a task keeps for the checkpoints that are being taken of its variables, and the threads
// on which its checkpoint kernels do what takes long. Internal.
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

struct Snapshot {
  std::vector<std::string> names;
  std::vector<Tensor> values;  // host memory; share their buffers with the variables until these change
};

// One a task, made when it is first used. Thread-safe.
class SnapshotStore final : public Resource {
 public:
  // A saver that has died leaves its snapshot; the next one frees what nobody has read for so long.
  static constexpr std::chrono::minutes kIdleLimit{10};

  static std::shared_ptr<SnapshotStore> Of(Device& device);

  // The number under which it is kept; never 0.
  int64_t Put(Snapshot snapshot);
  // Throws NotFoundError.
  std::shared_ptr<const Snapshot> Find(int64_t id);
  void Drop(int64_t id);
  size_t size() const;

  // Runs `closure`, which must not throw, off the threads that run plans.
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
  ThreadPool threads_{"checkpoint", 2};  // last: its threads end before the rest goes
};

}  // namespace cohort
