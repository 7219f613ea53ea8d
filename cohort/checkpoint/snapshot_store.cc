#include "cohort/checkpoint/snapshot_store.h"

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {

std::shared_ptr<SnapshotStore> SnapshotStore::Of(Device& device) {
  // Uses a container of its own, so that clearing variables does not remove the snapshots of a running save.
  return device.resources().LookupOrCreate<SnapshotStore>("_checkpoint", "snapshots",
                                                          [] { return std::make_shared<SnapshotStore>(); });
}

int64_t SnapshotStore::Put(Snapshot snapshot) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Kept> dropped;  // freed after the lock
  MutexLock lock(mu_);
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (now - it->second.last_use < kIdleLimit) {
      ++it;
      continue;
    }
    LogWarning("checkpoint", "snapshot ", it->first, " is dropped: nobody has read it for ", kIdleLimit.count(),
               " minutes");
    dropped.push_back(std::move(it->second));
    it = kept_.erase(it);
  }
  const int64_t id = next_id_++;
  kept_[id] = {std::make_shared<const Snapshot>(std::move(snapshot)), now};
  return id;
}

std::shared_ptr<const Snapshot> SnapshotStore::Find(int64_t id) {
  MutexLock lock(mu_);
  const auto it = kept_.find(id);
  if (it == kept_.end()) {
    throw NotFoundError(StrCat("[checkpoint] expected snapshot ", id,
                               " on this task; there is none: it was dropped, or not "
                               "read for ",
                               kIdleLimit.count(), " minutes; save again"));
  }
  it->second.last_use = std::chrono::steady_clock::now();
  return it->second.snapshot;
}

void SnapshotStore::Drop(int64_t id) {
  Kept dropped;
  MutexLock lock(mu_);
  const auto it = kept_.find(id);
  if (it == kept_.end()) return;
  dropped = std::move(it->second);
  kept_.erase(it);
}

size_t SnapshotStore::size() const {
  MutexLock lock(mu_);
  return kept_.size();
}

}  // namespace cohort
