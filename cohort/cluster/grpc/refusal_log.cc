#include "cohort/cluster/grpc/refusal_log.h"

#include <utility>

#include "cohort/core/logging.h"

namespace cohort {
namespace {

constexpr std::chrono::seconds kPause{1};

}  // namespace

void RefusalLog::Refused(const std::string& peer, const std::string& why) {
  int64_t left_out = 0;
  {
    MutexLock lock(mu_);
    ++count_;
    const Clock::time_point now = now_();
    if (now < next_) {
      ++left_out_;
      return;
    }
    next_ = now + kPause;
    left_out = std::exchange(left_out_, 0);
  }
  const std::string more = left_out == 0 ? "" : StrCat(" (", left_out, " more since the last such line)");
  LogWarning("transport", "refused a connection from ", peer, ": ", why, more);
}

int64_t RefusalLog::count() const {
  MutexLock lock(mu_);
  return count_;
}

}  // namespace cohort
