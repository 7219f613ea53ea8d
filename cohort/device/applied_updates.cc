#include "cohort/device/applied_updates.h"

#include <algorithm>

namespace cohort {

bool AppliedUpdates::Begin(const ClosureId& closure, const std::string& update) {
  MutexLock lock(mu_);
  Coordinator& coordinator = coordinators_[closure.coordinator];
  coordinator.used = ++calls_;
  if (coordinators_.size() > kCoordinators) {
    coordinators_.erase(std::min_element(coordinators_.begin(), coordinators_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  if (closure.lowest > coordinator.lowest) {
    coordinator.lowest = closure.lowest;
    coordinator.closures.erase(coordinator.closures.begin(), coordinator.closures.lower_bound(closure.lowest));
  }
  if (closure.number < coordinator.lowest) return false;
  return coordinator.closures[closure.number].insert(update).second;
}

void AppliedUpdates::Undo(const ClosureId& closure, const std::string& update) {
  MutexLock lock(mu_);
  const auto coordinator = coordinators_.find(closure.coordinator);
  if (coordinator == coordinators_.end()) return;
  const auto found = coordinator->second.closures.find(closure.number);
  if (found == coordinator->second.closures.end()) return;
  found->second.erase(update);
  if (found->second.empty()) coordinator->second.closures.erase(found);
}

size_t AppliedUpdates::size() {
  MutexLock lock(mu_);
  size_t count = 0;
  for (const auto& [id, coordinator] : coordinators_) count += coordinator.closures.size();
  return count;
}

}  // namespace cohort
