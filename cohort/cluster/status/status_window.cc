#include "cohort/cluster/status/status_window.h"

#include <algorithm>
#include <numeric>

namespace cohort {
namespace {

constexpr double kShortestWindow = 0.5;  // seconds

// A counter that has become smaller, such as the global step after a restore, has no rate.
double RateOf(int64_t before, int64_t after, double seconds) {
  return after > before && seconds >= kShortestWindow ? static_cast<double>(after - before) / seconds : 0;
}

StepUse UseOf(const RunningStep& step) {
  if (step.operations.empty()) return StepUse::kCompute;
  bool data = false;
  for (const RunningOperation& operation : step.operations) {
    const bool works = !operation.waits() || operation.wait == WaitKind::kWork;
    const bool reads_input = operation.op.starts_with("Iterator");
    if (works && !reads_input) return StepUse::kCompute;
    data |= works;
  }
  return data ? StepUse::kData : StepUse::kWait;
}

}  // namespace

StepUse UseOf(const std::vector<RunningStep>& steps) {
  bool data = false;
  for (const RunningStep& step : steps) {
    const StepUse use = UseOf(step);
    if (use == StepUse::kCompute) return use;
    data |= use == StepUse::kData;
  }
  if (steps.empty()) return StepUse::kNone;
  return data ? StepUse::kData : StepUse::kWait;
}

void StatusWindow::Add(const StatusSample& sample) {
  samples_.push_back(sample);
  while (samples_.size() > 2 && sample.time - samples_[1].time >= kStatusWindow) samples_.pop_front();
}

void StatusWindow::Fill(const StatusSample& now, TaskStatus* status) const {
  status->steps = static_cast<uint64_t>(now.steps);
  status->sent_bytes = static_cast<uint64_t>(now.sent_bytes);
  status->received_bytes = static_cast<uint64_t>(now.received_bytes);
  status->global_step = now.global_step;
  if (samples_.empty()) return;
  const StatusSample& first = samples_.front();
  const double seconds = std::chrono::duration<double>(now.time - first.time).count();
  status->steps_per_second = RateOf(first.steps, now.steps, seconds);
  status->sent_per_second = RateOf(first.sent_bytes, now.sent_bytes, seconds);
  status->received_per_second = RateOf(first.received_bytes, now.received_bytes, seconds);
  // The variable may be younger than the window.
  const auto counted = std::ranges::find_if(samples_, [](const StatusSample& s) { return s.global_step.has_value(); });
  if (counted != samples_.end() && now.global_step) {
    const double since = std::chrono::duration<double>(now.time - counted->time).count();
    status->global_steps_per_second = RateOf(*counted->global_step, *now.global_step, since);
  }
  std::array<int64_t, kStepUses> looks{};
  for (size_t i = 0; i < kStepUses; ++i) looks[i] = now.looks[i] - first.looks[i];
  const int64_t all = std::accumulate(looks.begin(), looks.end(), int64_t{0});
  const auto share = [&](StepUse use) {
    return all == 0 ? 0 : static_cast<double>(looks[static_cast<size_t>(use)]) / static_cast<double>(all);
  };
  status->shares = {share(StepUse::kData), share(StepUse::kCompute), share(StepUse::kWait)};
}

bool StatusWindow::SteppedLately(const StatusSample& now) const {
  if (samples_.size() < 2) return now.steps > 0;  // the only sample may be younger than the last step
  return now.steps > samples_[samples_.size() - 2].steps;
}

}  // namespace cohort
