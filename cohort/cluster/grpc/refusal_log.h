// RefusalLog: says who was refused, without letting strangers fill the log.
#pragma once

#include <chrono>
#include <string>

#include "cohort/core/mutex.h"

namespace cohort {

// Logs at most one warning in a second. The next one says how many were left out in between. Thread-safe.
class RefusalLog {
 public:
  // `peer` is the address of the peer that was refused.
  void Refused(const std::string& peer, const std::string& why) COHORT_EXCLUDES(mu_);
  // Returns how many peers were refused so far.
  int64_t count() const COHORT_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  int64_t count_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t left_out_ COHORT_GUARDED_BY(mu_) = 0;
  std::chrono::steady_clock::time_point next_ COHORT_GUARDED_BY(mu_){};
};

}  // namespace cohort
