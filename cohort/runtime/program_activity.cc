#include "cohort/runtime/program_activity.h"

#include <algorithm>
#include <memory>

#include "cohort/runtime/master.h"

namespace cohort {

ProgramActivity& ProgramActivity::Global() {
  static ProgramActivity* const activity = new ProgramActivity;  // never freed: threads may ask while the process ends
  return *activity;
}

void ProgramActivity::Add(const Master& master) {
  MutexLock lock(mu_);
  masters_.push_back(&master);
  ++changes_;
}

void ProgramActivity::Remove(const Master& master) {
  MutexLock lock(mu_);
  const auto found = std::ranges::find(masters_, &master);
  if (found == masters_.end()) return;
  masters_.erase(found);
  ++changes_;
  starts_of_closed_ += master.num_starts();
}

uint64_t ProgramActivity::Stamp() const {
  MutexLock lock(mu_);
  uint64_t stamp = changes_ + starts_of_closed_ + collectives_.load(std::memory_order_relaxed);
  for (const Master* master : masters_) stamp += master->num_starts();
  return stamp;
}

ProgramActivity::Report ProgramActivity::Collect() const {
  Report report;
  report.stamp = Stamp();
  report.training_done = training_done_;
  Master::Work work;
  {
    MutexLock lock(mu_);
    report.sessions = static_cast<int64_t>(masters_.size());
    for (const Master* master : masters_) master->AppendWork(&work);
  }
  // Without the lock, because a thread that has the lock of an executable may call Stamp.
  report.in_call = calls_ > 0 || work.in_call;
  for (const auto& call : work.started) {
    // Nobody waits for a step that its task repeats.
    report.in_call = report.in_call || (!call->repeats() && !call->PartsAtWork().empty());
  }
  for (const auto& part : work.inline_parts) {
    std::vector<RunningStep> steps;
    part->AppendRunning(&steps);
    report.in_call = report.in_call || !steps.empty();
  }
  return report;
}

}  // namespace cohort
