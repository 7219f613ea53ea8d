#include "cohort/runtime/data_flow/step_clock.h"

#include <algorithm>

#include "cohort/core/str_cat.h"

namespace cohort {

int64_t StepClockResource::SlowestLocked() const {
  const auto slowest =
      std::min_element(steps_.begin(), steps_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return slowest == steps_.end() ? 0 : slowest->second;
}

void StepClockResource::Join(PendingKernel kernel) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    const int64_t slowest = SlowestLocked();
    steps_.try_emplace(kernel.session(), slowest);
    ended.push_back({std::move(kernel), removed_});
  }
  EndAll(std::move(ended));
}

void StepClockResource::Tick(PendingKernel kernel, int64_t limit, int64_t staleness) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    const uint64_t session = kernel.session();
    const int64_t slowest = SlowestLocked();
    ++steps_.try_emplace(session, slowest).first->second;
    staleness_.push_back(staleness);
    if (staleness_.size() > kMostKept) staleness_.pop_front();
    const uint64_t id = next_id_++;
    waiting_.push_back({id, std::move(kernel), session, limit});
    Serve(&ended);
    const auto cancel = [self = shared_from_this(), id](const Status& why) { self->Cancel(id, why); };
    if (auto cancelled = WatchLast<Waiting>(waiting_, id, cancel)) {
      const Status why = cancelled->kernel.WhyCancelled();
      ended.push_back({std::move(cancelled->kernel), why});
    }
  }
  EndAll(std::move(ended));
}

void StepClockResource::Serve(std::vector<Ended>* ended) {
  const int64_t slowest = SlowestLocked();
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto found = steps_.find(waiting->session);
    const bool goes_on =
        !removed_.ok() || waiting->limit < 1 || found == steps_.end() || found->second - slowest < waiting->limit;
    if (!goes_on) {
      ++waiting;
      continue;
    }
    ended->push_back({std::move(waiting->kernel), removed_});
    waiting = waiting_.erase(waiting);
  }
}

std::vector<int64_t> StepClockResource::TakeStaleness() {
  MutexLock lock(mu_);
  std::vector<int64_t> taken(staleness_.begin(), staleness_.end());
  staleness_.clear();
  return taken;
}

void StepClockResource::Cancel(uint64_t id, const Status& why) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    auto cancelled = TakeOut(waiting_, id);
    if (!cancelled) return;
    ended.push_back({std::move(cancelled->kernel), why});
  }
  EndAll(std::move(ended));
}

void StepClockResource::OnRemoved(const std::string& container) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    removed_ = Status(Code::kAborted, StrCat("[step clock] ", Describe(), " was removed: the container '", container,
                                             "' was cleared; start a new session and initialize it"));
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void StepClockResource::OnSessionEnded(uint64_t session) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    steps_.erase(session);
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void StepClockResource::EndAll(std::vector<Ended> ended) {
  const std::shared_ptr<StepClockResource> alive = shared_from_this();  // a step that goes on may remove the clock
  for (Ended& one : ended) one.kernel.End(one.status);
}

}  // namespace cohort
