// RefusalLog: says who was refused, without letting strangers fill the log.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "cohort/core/mutex.h"

namespace cohort {

// Logs at most one warning in a second. The next one says how many were left out in between. Thread-safe.
class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;
  // `now` tells the time. Several threads may call it at the same time.
  explicit RefusalLog(std::function<Clock::time_point()> now = &Clock::now) : now_(std::move(now)) {}
  // `peer` is the address of the peer that was refused.
  void Refused(const std::string& peer, const std::string& why) COHORT_EXCLUDES(mu_);
  // Returns how many peers were refused so far.
  int64_t count() const COHORT_EXCLUDES(mu_);

 private:
  const std::function<Clock::time_point()> now_;
  mutable Mutex mu_;
  int64_t count_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t left_out_ COHORT_GUARDED_BY(mu_) = 0;
  Clock::time_point next_ COHORT_GUARDED_BY(mu_){};
};

}  // namespace cohort
