#include "tools/cohort/restart_record.h"

#include <algorithm>
#include <cmath>

namespace cohort::tools {
namespace {

constexpr RestartRecord::Seconds kFirstPause{0.1};
constexpr RestartRecord::Seconds kLongestPause{10};
constexpr size_t kMostDoublings = 10;  // enough for the longest pause

}  // namespace

RestartRecord::Seconds RestartRecord::Add(Clock::time_point now, bool counts) {
  for (auto* times : {&failures_, &counted_}) std::erase_if(*times, [&](auto time) { return time < now - window_; });
  const size_t before = failures_.size();
  failures_.push_back(now);
  if (counts) counted_.push_back(now);
  return std::min(kLongestPause, kFirstPause * std::exp2(static_cast<double>(std::min(before, kMostDoublings))));
}

int RestartRecord::Counted(Clock::time_point now) const {
  return static_cast<int>(std::ranges::count_if(counted_, [&](auto time) { return time >= now - window_; }));
}

}  // namespace cohort::tools
