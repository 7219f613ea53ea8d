// AbortGuard: notices that NCCL does not come back, and ends the process if it cannot be made to stop. Internal to
// nccl/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "cohort/core/mutex.h"

namespace cohort::collective {

// Watches, on a thread of its own, the threads of the lanes. While the group works, it tells if a lane does not return
// from a call of NCCL, so that the group fails. When the group has failed, it waits until the lanes have aborted their
// communicators. If they have not done so in time, their threads hang inside of NCCL, and their devices cannot be used
// any more. Then the guard logs why the group has failed, and ends the process. The NcclEngine owns it. Thread-safe.
// End it with Join.
class AbortGuard {
 public:
  using Clock = std::chrono::steady_clock;
  // Gets the rank of a lane that is in a call for longer than the limit of the call. It is called on the guard's
  // thread.
  using OnStuck = std::function<void(int rank, Clock::duration limit)>;
  explicit AbortGuard(OnStuck on_stuck) : on_stuck_(std::move(on_stuck)) {}
  // Requires: Join has returned, or Start was not called.
  ~AbortGuard() = default;

  // Starts the thread. `lanes` is how often Ended will be called.
  void Start(int lanes);
  // The lane of `rank` begins a call of NCCL, which should return within the limit, and has come back from it.
  void Entered(int rank, Clock::duration limit) COHORT_EXCLUDES(mu_);
  void Left(int rank) COHORT_EXCLUDES(mu_);
  // The group has failed with `why`: the time of the aborts begins. Later calls do nothing.
  void Arm(const std::string& why) COHORT_EXCLUDES(mu_);
  // A lane has ended.
  void Ended() COHORT_EXCLUDES(mu_);
  // Waits until the thread has ended. Requires: all lanes have ended, or will do so.
  void Join();
  bool IsOwnThread() const { return thread_.get_id() == std::this_thread::get_id(); }

  // For tests: called instead of ending the process. Null undoes it.
  using EndProcess = void (*)(const std::string& why);
  static void ReplaceEndOfProcess(EndProcess end);

 private:
  // A call that a lane is in.
  struct Call {
    Clock::time_point until;  // then it takes too long
    Clock::duration limit;
  };
  void Loop() COHORT_EXCLUDES(mu_);
  // Waits until the group has failed or all lanes have ended, and returns -1; or until a call takes too long, and
  // returns its rank and sets `limit`.
  int AwaitStuck(Clock::duration* limit) COHORT_EXCLUDES(mu_);

  const OnStuck on_stuck_;
  Mutex mu_;
  CondVar changed_;
  int lanes_ COHORT_GUARDED_BY(mu_) = 0;              // that have not ended
  std::map<int, Call> calls_ COHORT_GUARDED_BY(mu_);  // by rank
  Clock::time_point wakes_ COHORT_GUARDED_BY(mu_);    // when the thread looks again if nothing happens
  bool armed_ COHORT_GUARDED_BY(mu_) = false;
  std::string why_ COHORT_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace cohort::collective
