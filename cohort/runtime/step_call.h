// StepCall: one step of a session, as its master sees it. A part of a step is what one task does for it. StepWatch:
// checks the time limits of steps that Session::RunAsync has started.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/prepared_signature.h"

namespace cohort {

// The time limits of a step.
struct StepLimits {
  std::chrono::milliseconds timeout{0};  // after this the step is cancelled; 0: no limit
  std::chrono::milliseconds late{0};     // after this the log names the tasks that are still at work; 0: never
};

// One step of a session: Start starts the parts and does not wait; Wait waits until every part has ended. The caller
// owns it by shared_ptr. The callbacks that it gives to the tasks share it too, because a callback may come after
// Abandon, and the last callback may still be returning when Wait has returned. Thread-safe.
class StepCall : public std::enable_shared_from_this<StepCall> {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  // `done` is called once, on any thread, with the outcome of the step. It may be null if the caller calls Wait.
  // `prepared` must live until the last part has ended or Abandon has returned. The StepCall does not own `prepared`.
  // If it did, a callback on a thread of a task might free `prepared` last, and so destroy the task. The task would
  // then have to join the thread on which it is destroyed.
  StepCall(const PreparedSignature& prepared, const StepStart& step, StepLimits limits, Done done);

  // Starts all parts. If there are none, ends the step. Must be called once. Requires: `feeds` fit the signature.
  void Start(const FeedValues& feeds, Executor::Mode mode);
  // Waits until the last part has ended. Returns the results. Throws the error that made the step fail. Throws
  // DeadlineExceededError if the timeout passed before any part failed; the message names the tasks that were still at
  // work then. Throws the error of Abandon if that is called before the last part has ended.
  std::vector<Tensor> Wait() COHORT_EXCLUDES(mu_);
  // Does what is due at `now`: cancels the parts if the timeout has passed, or logs a warning if the step is late.
  // Returns the time of the next check, or time_point::max() if the step has ended or no check is due any more.
  Clock::time_point LookAtClock(Clock::time_point now) COHORT_EXCLUDES(mu_);
  int64_t number() const { return step_; }
  // Returns whether the task repeats the step by itself (StepStart::repeat), so that nobody waits for its end.
  bool repeats() const { return start_of_parts_.repeat; }
  // A part that has not ended.
  struct PartAtWork {
    std::shared_ptr<TaskClient> task;
    ExecutableKey key;
  };
  // Returns the parts that have not ended. The result is empty if the step has ended or was abandoned.
  std::vector<PartAtWork> PartsAtWork() COHORT_EXCLUDES(mu_);
  // Makes the step fail with `why`, if it has not failed or ended before, and cancels its parts. Does not wait for
  // their ends.
  void Cancel(const Status& why) COHORT_EXCLUDES(mu_);
  // Keeps the object until the last part has ended and its callback was freed, however the step ends.
  void KeepUntilFreed(std::shared_ptr<void> object) COHORT_EXCLUDES(mu_);
  // Ends the step with `why` at once, because its session closes or a kernel does not return, and calls `done` or lets
  // Wait return. If a part has failed before, or the
  // timeout has passed, `done` gets that error. If the step has ended before, only waits until `done` has returned.
  // Results that come later are ignored. When Abandon returns, `done` has returned, and no callback of a part uses
  // `prepared` any more. The exception: if `done` itself calls Abandon, Abandon does nothing.
  void Abandon(const Status& why) COHORT_EXCLUDES(mu_);

 private:
  void PartDone(size_t index, const Status& of_part, std::vector<Tensor> rets) COHORT_EXCLUDES(mu_);
  void CancelAllBut(size_t except, const Status& why);
  Status Failure() COHORT_EXCLUDES(mu_);
  // Returns the names of the tasks whose parts have not ended.
  std::string AtWork() const COHORT_REQUIRES(mu_);
  // Calls `done_` without holding the lock, and then counts the caller out of `answering_`. Requires: the step has
  // ended, `done_` is not null, and the caller is counted in `answering_`.
  void Finish() COHORT_EXCLUDES(mu_);

  const PreparedSignature& prepared_;
  const StepStart start_of_parts_;
  const int64_t step_;
  const std::chrono::milliseconds timeout_;
  const Clock::time_point start_;
  const Clock::time_point deadline_;
  Mutex mu_;
  CondVar changed_;
  Done done_ COHORT_GUARDED_BY(mu_);
  size_t left_ COHORT_GUARDED_BY(mu_);                         // parts that have not ended
  bool ended_early_ COHORT_GUARDED_BY(mu_) = false;            // Abandon was called
  int answering_ COHORT_GUARDED_BY(mu_) = 0;                   // threads that use prepared_ now, or are in Finish
  std::thread::id finisher_ COHORT_GUARDED_BY(mu_);            // the thread that calls `done_` now; none: id()
  bool too_late_ COHORT_GUARDED_BY(mu_) = false;               // the timeout has passed
  std::chrono::milliseconds patience_ COHORT_GUARDED_BY(mu_);  // time until the next log line; doubles each time
  Clock::time_point say_ COHORT_GUARDED_BY(mu_);               // when the next log line is due
  Status status_ COHORT_GUARDED_BY(mu_);
  std::vector<bool> ended_ COHORT_GUARDED_BY(mu_);  // by index of the part
  std::vector<Tensor> results_ COHORT_GUARDED_BY(mu_);
  std::shared_ptr<void> kept_ COHORT_GUARDED_BY(mu_);
};

// Checks the time limits of the steps of Session::RunAsync, which Master::StartStep has started. A master owns it. Its
// thread starts with the first step; the destructor ends and joins it. Does not keep steps alive. Thread-safe.
class StepWatch {
 public:
  StepWatch() = default;
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  // From now on the thread of the StepWatch calls LookAtClock of the step each time a check is due, until the step has
  // ended.
  void Add(const std::shared_ptr<StepCall>& call) COHORT_EXCLUDES(mu_);
  // Returns the StepCalls that were added and still exist. The step of such a StepCall may have ended.
  std::vector<std::shared_ptr<StepCall>> UnderWay() COHORT_EXCLUDES(mu_);

 private:
  struct Entry {
    std::weak_ptr<StepCall> call;
    StepCall::Clock::time_point due;
  };
  void Loop() COHORT_EXCLUDES(mu_);

  Mutex mu_;
  CondVar changed_;
  std::vector<Entry> entries_ COHORT_GUARDED_BY(mu_);
  StepCall::Clock::time_point next_look_ COHORT_GUARDED_BY(mu_) = StepCall::Clock::time_point::min();
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
