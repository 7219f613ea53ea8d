// ClosureQueue: the closures of a coordinator that have not ended, and the error that one of them has brought. Internal
// to distribute/.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/distribute/coordinator/closure.h"

namespace cohort::distribute {

// Gives closures to workers in the order in which they came. A closure is queued, in flight on one worker, or ended. If
// one ends with an error, all queued ones are cancelled, and the workers are told to cancel those in flight; the next
// Put or AwaitIdle waits for the ends of these, throws the error and forgets it. The coordinator owns it. Thread-safe.
class ClosureQueue {
 public:
  // The most closures that are queued; TensorFlow's limit.
  static constexpr size_t kLimit = 256 * 1024;

  // `in_flight`: the most closures that run on a worker at the same time.
  ClosureQueue(size_t workers, int in_flight, size_t limit = kLimit)
      : limit_(limit), most_in_flight_(in_flight), slots_(workers) {}

  // The next three functions are for the program.
  // Adds a closure, and gives it its number. Waits while the queue is full. Throws the error of an earlier closure, or
  // what Fail was given.
  void Put(const ClosurePtr& closure) COHORT_EXCLUDES(mu_);
  // Waits until every closure has ended. Throws as Put does.
  void AwaitIdle() COHORT_EXCLUDES(mu_);
  // Returns whether every closure has ended and there is no error that has not been thrown.
  bool idle() COHORT_EXCLUDES(mu_);
  // Throws what Fail was given, if it was called.
  void ExpectAlive() COHORT_EXCLUDES(mu_);

  // What a worker has to do next.
  enum class Next { kRun, kCancel, kRecover, kStop };
  // The next functions are for the thread of a worker, or for the ends of its closures.
  // Waits until the worker may run a closure, which is then *closure; until the worker has to cancel the closures that
  // it runs; until the worker is broken; or until Stop.
  Next Take(size_t worker, ClosurePtr* closure) COHORT_EXCLUDES(mu_);
  // The closure has ended on the worker. If `ready` is not null, the caller is able to start a call of the function
  // `ready` at once: returns the next closure if it is one and the worker may run it, and otherwise null.
  ClosurePtr Finish(size_t worker, const ClosurePtr& closure, const Status& status, RunResults results,
                    const ClosureFunction* ready = nullptr) COHORT_EXCLUDES(mu_);
  // A closure that Finish has returned is started. If the closures in flight were cancelled between the two calls, the
  // worker's thread may have done that before the start: tells it again.
  void Started(size_t worker, const ClosurePtr& closure) COHORT_EXCLUDES(mu_);
  // The closure has not run to its end because of the worker or of a connection: puts it back to its place in the
  // queue, and makes the worker broken. Cancels the closure instead if another one has failed or the queue has stopped.
  void Return(size_t worker, const ClosurePtr& closure, const Status& why) COHORT_EXCLUDES(mu_);
  // Makes the worker broken: it gets no closures until Repaired.
  void Break(size_t worker, const Status& why) COHORT_EXCLUDES(mu_);
  void Repaired(size_t worker) COHORT_EXCLUDES(mu_);
  // Returns why the worker is broken.
  Status why_broken(size_t worker) COHORT_EXCLUDES(mu_);
  // Returns why closures in flight have to be cancelled.
  Status why_cancelled() COHORT_EXCLUDES(mu_);
  // Waits for this time or until Stop. Returns false if the queue has stopped.
  bool Pause(std::chrono::milliseconds time) COHORT_EXCLUDES(mu_);

  // The coordinator cannot go on: cancels what is queued. Every later Put and AwaitIdle throws `why`.
  void Fail(const Status& why) COHORT_EXCLUDES(mu_);
  // Ends the queue: cancels what is queued, and wakes all workers. Later calls of Put throw FailedPreconditionError.
  void Stop() COHORT_EXCLUDES(mu_);

 private:
  struct Slot {
    int in_flight = 0;
    bool broken = false;
    bool waits = false;   // its thread waits in Take
    bool cancel = false;  // its thread has to cancel the closures in flight
    Status why;
    CondVar work;
  };
  bool MayRun(const Slot& slot) const COHORT_REQUIRES(mu_);
  // Takes the first closure off the queue, for the worker.
  ClosurePtr TakeFirst(Slot& slot) COHORT_REQUIRES(mu_);
  // Wakes a worker that waits and may run a closure, if there is one.
  void WakeOne() COHORT_REQUIRES(mu_);
  void WakeAll() COHORT_REQUIRES(mu_);
  void CancelQueued(const std::string& why) COHORT_REQUIRES(mu_);
  // Tells the workers to cancel what they run.
  void CancelInFlight(const Status& why) COHORT_REQUIRES(mu_);
  // If there is an error, waits until nothing is in flight, and throws it.
  void ThrowError() COHORT_REQUIRES(mu_);
  void TakeOff(size_t worker, const Closure& closure) COHORT_REQUIRES(mu_);
  void CheckAlive() const COHORT_REQUIRES(mu_);

  const size_t limit_;
  const int most_in_flight_;
  Mutex mu_;
  CondVar changed_;   // for the program
  CondVar stopping_;  // for Pause
  std::deque<ClosurePtr> queue_ COHORT_GUARDED_BY(mu_);
  std::vector<Slot> slots_ COHORT_GUARDED_BY(mu_);
  int64_t next_number_ COHORT_GUARDED_BY(mu_) = 1;
  std::set<int64_t> in_flight_ COHORT_GUARDED_BY(mu_);  // numbers of closures
  Status error_ COHORT_GUARDED_BY(mu_);                 // of a closure; not thrown yet
  Status fatal_ COHORT_GUARDED_BY(mu_);
  Status why_cancelled_ COHORT_GUARDED_BY(mu_);
  int64_t cancels_ COHORT_GUARDED_BY(mu_) = 0;  // calls of CancelInFlight
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort::distribute
