#include "cohort/cluster/steps/lease_table.h"

#include <algorithm>

#include "cohort/core/deadline.h"
#include "cohort/core/thread_pool.h"

namespace cohort {

void LeaseTable::Hold(uint64_t session, const ClientId& client) {
  MutexLock lock(mu_);
  if (stopped_ || !leases_.try_emplace(session, Lease{client, std::nullopt, false}).second) return;
  on_count_(leases_.size());
}

void LeaseTable::OnConnected(const ClientId& client) {
  MutexLock lock(mu_);
  for (auto& [session, lease] : leases_) {
    if (lease.client == client) lease.expiry.reset();
  }
}

void LeaseTable::OnGone(const ClientId& client) {
  std::vector<uint64_t> ended;
  {
    MutexLock lock(mu_);
    bool waits = false;
    for (auto& [session, lease] : leases_) {
      if (lease.ended || lease.client != client) continue;
      if (reconnect_limit_.count() > 0) {
        lease.expiry = DeadlineAfter(reconnect_limit_);
        waits = true;
      } else {
        lease.ended = true;
        ended.push_back(session);
      }
    }
    if (waits && !stopped_ && !expiry_.joinable()) expiry_ = std::thread([this] { RunExpiry(); });
  }
  changed_.NotifyAll();
  for (const uint64_t session : ended) on_ended_(session);
}

void LeaseTable::End(uint64_t session) {
  {
    MutexLock lock(mu_);
    const auto found = leases_.find(session);
    if (found == leases_.end() || found->second.ended) return;
    found->second.ended = true;
  }
  on_ended_(session);
}

void LeaseTable::Erase(uint64_t session) {
  MutexLock lock(mu_);
  if (leases_.erase(session) > 0) on_count_(leases_.size());
}

bool LeaseTable::HasEnded(uint64_t session) {
  MutexLock lock(mu_);
  const auto found = leases_.find(session);
  return found != leases_.end() && found->second.ended;
}

void LeaseTable::RunExpiry() {
  SetThreadName("cohort-leases");
  for (;;) {
    std::vector<uint64_t> ended;
    {
      MutexLock lock(mu_);
      if (stopped_) return;
      const Clock::time_point now = Clock::now();
      Clock::time_point next = Clock::time_point::max();
      for (auto& [session, lease] : leases_) {
        if (lease.ended || !lease.expiry) continue;
        if (*lease.expiry <= now) {
          lease.ended = true;
          ended.push_back(session);
        } else {
          next = std::min(next, *lease.expiry);
        }
      }
      if (ended.empty() && next == Clock::time_point::max()) {
        changed_.Wait(mu_);  // until a client is gone, or Stop
      } else if (ended.empty()) {
        changed_.WaitUntil(mu_, next);
      }
    }
    for (const uint64_t session : ended) on_ended_(session);
  }
}

std::vector<LeaseTable::Entry> LeaseTable::List() {
  std::vector<Entry> entries;
  const auto now = Clock::now();
  MutexLock lock(mu_);
  for (const auto& [session, lease] : leases_) {
    Entry entry{session, lease.client, lease.ended, std::nullopt};
    if (lease.expiry) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*lease.expiry - now);
      entry.expires_in = std::max(left, std::chrono::milliseconds(0));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

void LeaseTable::Stop() {
  std::thread expiry;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    leases_.clear();
    on_count_(0);
    expiry.swap(expiry_);
  }
  changed_.NotifyAll();
  if (expiry.joinable()) expiry.join();
}

}  // namespace cohort
