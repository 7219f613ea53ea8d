// StepCall: one step of a session as its caller sees it, from the start of its parts to the last of their answers.
// StepWatch: looks at the clock for steps that nobody waits for.
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

// When a step is late, and when it is too late.
struct StepLimits {
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds late{0};     // after which the log says who is still at work; 0: never
};

// Thread-safe. Shared by the caller and the callbacks of the parts, the last of which may end after the caller has gone
// on.
class StepCall : public std::enable_shared_from_this<StepCall> {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const Status&, std::vector<Tensor> results)>;

  // `done` may be null if the caller waits. It is called once, on any thread. `prepared` must live until the last part
  // has ended or Abandon has returned. It is not owned: its tasks own threads, which must not end them by dropping the
  // last reference in a callback.
  StepCall(const PreparedSignature& prepared, int64_t step, StepLimits limits, Done done);

  // Starts every part. Once only. Requires: `feeds` fit the signature.
  void Start(const FeedValues& feeds, Executor::Mode mode);
  // Waits until the last part has ended. Returns the results; throws what made the step fail, and DeadlineExceededError
  // with the tasks still at work if limits.timeout is over.
  std::vector<Tensor> Wait() COHORT_EXCLUDES(mu_);
  // Does what is due at `now`: cancels a step that is too late, logs one that is late. Returns when to look again;
  // time_point::max() if the step has ended.
  Clock::time_point LookAtClock(Clock::time_point now) COHORT_EXCLUDES(mu_);
  // Ends the step with `why` at once, for a session that closes. Answers that come later are dropped; an answer that is
  // being handled is waited for.
  void Abandon(const Status& why) COHORT_EXCLUDES(mu_);

 private:
  void PartDone(size_t index, const Status& status, std::vector<Tensor> rets) COHORT_EXCLUDES(mu_);
  void CancelAllBut(size_t except, const Status& why);
  Status Failure() COHORT_EXCLUDES(mu_);
  // The tasks whose parts have not ended.
  std::string AtWork() const COHORT_REQUIRES(mu_);
  // Calls `done_`, outside of the lock, if this is the end.
  void Finish() COHORT_EXCLUDES(mu_);

  const PreparedSignature& prepared_;
  const int64_t step_;
  const std::chrono::milliseconds timeout_;
  const Clock::time_point start_;
  const Clock::time_point deadline_;
  Mutex mu_;
  CondVar changed_;
  Done done_ COHORT_GUARDED_BY(mu_);
  size_t left_ COHORT_GUARDED_BY(mu_);
  bool ended_early_ COHORT_GUARDED_BY(mu_) = false;  // by Abandon
  int answering_ COHORT_GUARDED_BY(mu_) = 0;         // callbacks that use prepared_
  bool too_late_ COHORT_GUARDED_BY(mu_) = false;
  std::chrono::milliseconds patience_ COHORT_GUARDED_BY(mu_);
  Clock::time_point say_ COHORT_GUARDED_BY(mu_);
  Status status_ COHORT_GUARDED_BY(mu_);
  std::vector<bool> ended_ COHORT_GUARDED_BY(mu_);  // index: part
  std::vector<Tensor> results_ COHORT_GUARDED_BY(mu_);
};

// Owned by a master. Thread-safe. Its thread starts with the first step, and ends with the object.
class StepWatch {
 public:
  StepWatch() = default;
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  // Calls LookAtClock of the step when it is due, until the step has ended.
  void Add(const std::shared_ptr<StepCall>& call) COHORT_EXCLUDES(mu_);
  // The steps that have not ended.
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
