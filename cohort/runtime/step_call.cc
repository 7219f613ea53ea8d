// A StepCall counts the parts of a step that have not ended. The first part that fails cancels the others. A time
// limit, or the end of the session, may end the step earlier. The StepWatch has a thread that sleeps until the next
// time limit of a step.
#include "cohort/runtime/step_call.h"

#include <algorithm>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

constexpr StepCall::Clock::time_point kNever = StepCall::Clock::time_point::max();

// Returns the time of a limit of StepLimits.
StepCall::Clock::time_point After(std::chrono::milliseconds limit) {
  return limit.count() > 0 ? DeadlineAfter(limit) : kNever;
}

double Seconds(StepCall::Clock::duration time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) / 1000.0;
}

}  // namespace

StepCall::StepCall(const PreparedSignature& prepared, const StepStart& step, StepLimits limits, Done done)
    : prepared_(prepared),
      start_of_parts_(step),
      step_(step.number),
      timeout_(limits.timeout),
      start_(Clock::now()),
      deadline_(After(limits.timeout)),
      done_(std::move(done)),
      left_(prepared_.parts.size()),
      patience_(limits.late),
      say_(After(limits.late)),
      ended_(prepared_.parts.size(), false),
      results_(prepared_.fed_fetch.size()) {}

void StepCall::Start(const FeedValues& feeds, Executor::Mode mode) {
  const auto& parts = prepared_.parts;
  {
    MutexLock lock(mu_);
    for (size_t i = 0; i < prepared_.fed_fetch.size(); ++i) {
      if (prepared_.fed_fetch[i] >= 0) results_[i] = feeds[prepared_.fed_fetch[i]];
    }
    if (parts.empty() && done_ == nullptr) return;
    if (parts.empty()) ++answering_;
  }
  if (parts.empty()) return Finish();
  const auto self = shared_from_this();
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<Tensor> args;
    args.reserve(parts[p].arg_feeds.size());
    for (const int feed : parts[p].arg_feeds) args.push_back(feeds[feed]);
    parts[p].task->StartStep(
        parts[p].key, start_of_parts_, std::move(args), mode,
        [self, p](const Status& status, std::vector<Tensor> rets) { self->PartDone(p, status, std::move(rets)); });
    // A part that has failed in the meantime, or another thread, may have cancelled this part before it was started.
    if (const Status failure = Failure(); !failure.ok()) parts[p].task->CancelStep(parts[p].key, step_, failure);
  }
}

std::vector<Tensor> StepCall::Wait() {
  for (;;) {  // ends: a lost task ends its part, a cancelled step ends its kernels, and Abandon ends the rest
    const Clock::time_point next = LookAtClock(Clock::now());
    MutexLock lock(mu_);
    if (left_ == 0 || (ended_early_ && answering_ == 0)) {
      status_.ThrowIfError();
      return std::move(results_);
    }
    next == kNever ? changed_.Wait(mu_) : static_cast<void>(changed_.WaitUntil(mu_, next));
  }
}

StepCall::Clock::time_point StepCall::LookAtClock(Clock::time_point now) {
  Status late;
  Clock::time_point next;
  {
    MutexLock lock(mu_);
    if (left_ == 0 || ended_early_) return kNever;
    if (!too_late_ && now >= deadline_) {
      too_late_ = true;
      late = Status(Code::kDeadlineExceeded, StrCat("[session] step ", step_, " did not end within ", timeout_.count(),
                                                    " ms; still at work: ", AtWork()));
      if (status_.ok()) status_ = late;
    } else if (now >= say_) {
      LogWarning("session", "step ", step_, " has been under way for ", Seconds(now - start_),
                 " s; still at work: ", AtWork());
      patience_ *= 2;  // the step may be a long one
      say_ = now + patience_;
    }
    next = too_late_ ? say_ : std::min(say_, deadline_);
  }
  if (!late.ok()) CancelAllBut(prepared_.parts.size(), late);
  return next;
}

std::vector<StepCall::PartAtWork> StepCall::PartsAtWork() {
  std::vector<PartAtWork> parts;
  MutexLock lock(mu_);
  if (ended_early_) return parts;
  for (size_t i = 0; i < ended_.size(); ++i) {
    if (!ended_[i]) parts.push_back({prepared_.parts[i].task, prepared_.parts[i].key});
  }
  return parts;
}

void StepCall::Cancel(const Status& why) {
  {
    MutexLock lock(mu_);
    if (left_ == 0 || ended_early_ || !status_.ok()) return;
    status_ = why;
    ++answering_;  // prepared_ is used below
  }
  CancelAllBut(prepared_.parts.size(), why);
  MutexLock lock(mu_);
  --answering_;
  changed_.NotifyAll();
}

void StepCall::KeepUntilFreed(std::shared_ptr<void> object) {
  MutexLock lock(mu_);
  kept_ = std::move(object);
}

void StepCall::Abandon(const Status& why) {
  {
    MutexLock lock(mu_);
    if (finisher_ == std::this_thread::get_id()) return;  // `done` has closed the session
    const bool ended = left_ == 0 || ended_early_;
    if (!ended) {
      ended_early_ = true;
      if (status_.ok()) status_ = why;
    }
    while (answering_ > 0) changed_.Wait(mu_);  // ends: a callback cancels other parts, and `done` must not wait
    if (ended) return;
    if (done_ == nullptr) return changed_.NotifyAll();  // Wait returns
    ++answering_;
  }
  Finish();
}

void StepCall::PartDone(size_t index, const Status& of_part, std::vector<Tensor> rets) {
  Status status = of_part;
  bool first_failure = false;
  {
    MutexLock lock(mu_);
    if (ended_early_) return;
    ++answering_;  // so that prepared_ stays
    const size_t expected = prepared_.parts[index].ret_fetches.size();
    if (status.ok() && rets.size() != expected) {
      status = Status(Code::kDataLoss, StrCat("[session] expected ", expected, " results of step ", step_, " from ",
                                              prepared_.parts[index].task->name(), "; got ", rets.size()));
    }
    first_failure = !status.ok() && status_.ok();
    if (first_failure) status_ = status;
  }
  if (first_failure) CancelAllBut(index, status);
  bool finishes = false;
  bool awaited = false;  // by Wait or Abandon
  {
    MutexLock lock(mu_);
    const std::vector<int>& fetches = prepared_.parts[index].ret_fetches;
    for (size_t i = 0; i < rets.size() && i < fetches.size(); ++i) {
      results_[static_cast<size_t>(fetches[i])] = std::move(rets[i]);
    }
    ended_[index] = true;
    --left_;
    if (left_ == 0 && !ended_early_ && done_ != nullptr) {
      finishes = true;
    } else {
      --answering_;
      awaited = left_ == 0 || ended_early_;
    }
  }
  // Without the lock, which the thread that wakes needs at once.
  if (awaited) changed_.NotifyAll();
  if (finishes) Finish();
}

void StepCall::Finish() {
  Done done;
  Status status;
  std::vector<Tensor> results;
  {
    MutexLock lock(mu_);
    finisher_ = std::this_thread::get_id();
    done = std::exchange(done_, nullptr);
    status = status_;
    if (status.ok()) results = std::move(results_);
  }
  done(status, std::move(results));
  done = nullptr;  // frees what the caller has captured
  MutexLock lock(mu_);
  finisher_ = {};
  --answering_;
  changed_.NotifyAll();
}

void StepCall::CancelAllBut(size_t except, const Status& why) {
  const auto& parts = prepared_.parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != except) parts[i].task->CancelStep(parts[i].key, step_, why);
  }
}

std::string StepCall::AtWork() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < ended_.size(); ++i) {
    if (!ended_[i]) names.push_back(prepared_.parts[i].task->name());
  }
  return StrJoin(names, ", ");
}

Status StepCall::Failure() {
  MutexLock lock(mu_);
  return status_;
}

StepWatch::~StepWatch() {
  std::thread thread;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void StepWatch::Add(const std::shared_ptr<StepCall>& call) {
  const auto due = call->LookAtClock(StepCall::Clock::now());
  MutexLock lock(mu_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.call.expired(); });
  entries_.push_back({call, due});
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Loop(); });
  } else if (due < next_look_) {
    changed_.NotifyAll();
  }
}

std::vector<std::shared_ptr<StepCall>> StepWatch::UnderWay() {
  std::vector<std::shared_ptr<StepCall>> calls;
  MutexLock lock(mu_);
  for (const Entry& entry : entries_) {
    if (auto call = entry.call.lock()) calls.push_back(std::move(call));
  }
  return calls;
}

void StepWatch::Loop() {
  SetThreadName("step watch");
  for (;;) {
    std::vector<std::shared_ptr<StepCall>> due;
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      auto next = kNever;
      const auto now = StepCall::Clock::now();
      for (Entry& entry : entries_) {
        if (entry.due > now) {
          next = std::min(next, entry.due);
        } else if (auto call = entry.call.lock()) {
          due.push_back(std::move(call));
        }
      }
      if (due.empty()) {
        next_look_ = next;
        next == kNever ? changed_.Wait(mu_) : static_cast<void>(changed_.WaitUntil(mu_, next));  // ends: destructor
        continue;
      }
    }
    for (const auto& call : due) {
      const auto again = call->LookAtClock(StepCall::Clock::now());
      MutexLock lock(mu_);
      for (Entry& entry : entries_) {
        if (entry.call.lock() == call) entry.due = again;
      }
    }
  }
}

}  // namespace cohort
