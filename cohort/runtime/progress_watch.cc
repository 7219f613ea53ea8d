// The watch of a session. Its thread wakes every quarter of the limit. The first look at a step only notes it, so that
// short steps cost nothing. A later look asks the tasks of the step for a stamp of what they do. If the stamp stays the
// same for the limit, the thread asks again, now for stacks, and fails the step.
#include "cohort/runtime/progress_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

// The limits of the time that another task may take to answer. It has a thread for answers alone. Between them it is
// half of the limit without progress.
constexpr std::chrono::milliseconds kShortestAnswer{1000};
constexpr std::chrono::milliseconds kLongestAnswer{5000};
// To take stacks may take two seconds.
constexpr std::chrono::milliseconds kShortestAnswerWithStacks{4000};
// How long the parts of a failed step have for their end.
constexpr std::chrono::seconds kEndTime{1};
constexpr char kHungKernel[] = "a kernel of a step that was given up does not return";

std::vector<StepReport> Ask(const std::vector<StepCall::PartAtWork>& parts, int64_t step, bool with_stacks,
                            std::chrono::milliseconds limit) {
  const auto time = std::clamp(limit / 2, with_stacks ? kShortestAnswerWithStacks : kShortestAnswer, kLongestAnswer);
  const auto deadline = std::chrono::steady_clock::now() + time;
  std::vector<StepReport> reports(parts.size());
  std::vector<std::thread> askers;  // a task that does not answer holds up no other
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto ask = [&, i] { reports[i] = parts[i].task->AskAboutStep(parts[i].key, step, with_stacks, deadline); };
    if (parts[i].task->is_remote() && parts.size() > 1) {
      askers.emplace_back(ask);
    } else {
      ask();
    }
  }
  for (std::thread& asker : askers) asker.join();
  return reports;
}

}  // namespace

ProgressWatch::ProgressWatch(std::chrono::milliseconds limit, Calls started_calls)
    : limit_(limit),
      period_(std::max(limit / 4, std::chrono::milliseconds(10))),
      started_calls_(std::move(started_calls)) {}

ProgressWatch::~ProgressWatch() {
  Stop();
  std::thread thread;
  {
    MutexLock lock(mu_);
    thread = std::move(thread_);
  }
  if (!thread.joinable()) return;
  thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
}

void ProgressWatch::Watch(const std::weak_ptr<Executable>& inline_part) {
  if (limit_.count() == 0) return;
  MutexLock lock(mu_);
  if (stopped_) return;
  if (!inline_part.expired()) inline_parts_.push_back(inline_part);
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
}

void ProgressWatch::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

bool ProgressWatch::stopped() {
  MutexLock lock(mu_);
  return stopped_;
}

void ProgressWatch::Add(const std::shared_ptr<StepCall>& call) {
  if (limit_.count() == 0) return;
  MutexLock lock(mu_);
  calls_.push_back(call);
}

void ProgressWatch::Remove(const StepCall& call) {
  if (limit_.count() == 0) return;
  std::shared_ptr<StepCall> removed;  // freed without the lock
  MutexLock lock(mu_);
  const auto found = std::ranges::find_if(calls_, [&](const auto& one) { return one.get() == &call; });
  removed = std::exchange(*found, std::move(calls_.back()));
  calls_.pop_back();
}

void ProgressWatch::Loop() {
  SetThreadName("progress watch");
  Tracks tracks;
  for (;;) {
    const auto next = Clock::now() + period_;
    {
      MutexLock lock(mu_);
      while (!stopped_ && changed_.WaitUntil(mu_, next)) {
      }
      if (stopped_) return;
    }
    tracks = Look(tracks);
  }
}

ProgressWatch::Tracks ProgressWatch::Look(const Tracks& before) {
  std::vector<std::shared_ptr<StepCall>> calls = started_calls_();
  std::vector<std::shared_ptr<Executable>> inline_parts;
  {
    MutexLock lock(mu_);
    calls.insert(calls.end(), calls_.begin(), calls_.end());
    std::erase_if(inline_parts_, [](const auto& part) { return part.expired(); });
    for (const auto& part : inline_parts_) inline_parts.push_back(part.lock());
  }
  std::erase(inline_parts, nullptr);
  Tracks now;
  for (const auto& call : calls) {
    if (stopped()) return now;
    const auto known = before.find(call->number());
    Track& track = now[call->number()];
    if (known == before.end()) continue;  // it may end soon
    track = known->second;
    LookAtCall(call, &track);
  }
  for (const auto& executable : inline_parts) {
    std::vector<RunningStep> steps;
    executable->AppendRunning(&steps);
    for (const RunningStep& step : steps) {
      if (now.contains(step.step)) continue;  // of a call
      Track& track = now[step.step];
      if (const auto known = before.find(step.step); known != before.end()) track = known->second;
      LookAtInline(executable, step, &track);
    }
  }
  return now;
}

bool ProgressWatch::IsLate(uint64_t stamp, Track* track) const {
  const auto now = Clock::now();
  if (!track->asked || track->stamp != stamp) {
    track->asked = true;
    track->stamp = stamp;
    track->progress = now;
  }
  return now - track->progress >= limit_;
}

std::string ProgressWatch::LateText(int64_t step, const Track& track) const {
  const auto seconds = std::chrono::duration<double>(Clock::now() - track.progress).count();
  return StrCat("[session] step ", step, " has made no progress for ", std::floor(seconds * 10) / 10,
                " s; the limit is ", std::chrono::duration<double>(limit_).count(),
                " s (SessionConfig::progress_limit, COHORT_PROGRESS_LIMIT); ");
}

void ProgressWatch::LookAtCall(const std::shared_ptr<StepCall>& call, Track* track) {
  const std::vector<StepCall::PartAtWork> parts = call->PartsAtWork();
  if (parts.empty() || track->abandoned) return;
  if (track->failed_at != Clock::time_point()) {
    if (Clock::now() - track->failed_at < kEndTime) return;
    track->abandoned = true;
    call->KeepUntilFreed(std::make_shared<HungThread>(kHungKernel));
    LogError("session", "a kernel of this process does not return; its run ends without it: ", track->why.message());
    return call->Abandon(track->why);
  }
  std::vector<StepReport> reports = Ask(parts, call->number(), false, limit_);
  if (!IsLate(StampOf(reports), track) || WaitsForOthers(reports)) return;
  reports = Ask(parts, call->number(), true, limit_);
  if (stopped() || WaitsForOthers(reports) || !IsLate(StampOf(reports), track)) return;
  track->failed_at = Clock::now();
  track->why = Status(Code::kDeadlineExceeded, StrCat(LateText(call->number(), *track), Describe(reports)));
  call->Cancel(track->why);
}

void ProgressWatch::LookAtInline(const std::shared_ptr<Executable>& executable, const RunningStep& step, Track* track) {
  if (track->failed_at != Clock::time_point() || !IsLate(step.stamp, track)) return;
  StepReport report;
  report.task = "this process";
  report.known = true;
  report.step = step;
  report.stacks = StacksFor(step.operations);
  std::vector<RunningStep> again;
  executable->AppendRunning(&again);
  const bool same = std::ranges::any_of(
      again, [&](const RunningStep& one) { return one.step == step.step && one.stamp == step.stamp; });
  if (!same) return;
  track->failed_at = Clock::now();
  track->why = Status(Code::kDeadlineExceeded, StrCat(LateText(step.step, *track), Describe({report})));
  LogError("session",
           "the thread that called Run does not return from a kernel; Run fails when it does: ", track->why.message());
  track->hung = std::make_shared<HungThread>(kHungKernel);
  executable->CancelStep(step.step, track->why);
}

}  // namespace cohort
