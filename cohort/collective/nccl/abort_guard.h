// AbortGuard: ends the process if NCCL cannot be made to stop. Internal to nccl/.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "cohort/core/mutex.h"

namespace cohort::collective {

// Waits, on a thread of its own, until the lanes of a group that has failed have aborted their communicators. If they
// have not done so in time, their threads hang inside of NCCL, and their devices cannot be used any more. Then the
// guard logs why the group has failed, and ends the process. The NcclEngine owns it. Thread-safe. End it with Join.
class AbortGuard {
 public:
  // How long an abort may take.
  static constexpr std::chrono::seconds kLimit{5};

  AbortGuard() = default;
  // Requires: Join has returned, or Start was not called.
  ~AbortGuard() = default;

  // Starts the thread. `lanes` is how often Ended will be called.
  void Start(int lanes);
  // The group has failed with `why`: the time begins. Later calls do nothing.
  void Arm(const std::string& why) COHORT_EXCLUDES(mu_);
  // A lane has ended.
  void Ended() COHORT_EXCLUDES(mu_);
  // Waits until the thread has ended. Requires: all lanes have ended, or will do so.
  void Join();

  // For tests: called instead of ending the process. Null undoes it.
  using EndProcess = void (*)(const std::string& why);
  static void ReplaceEndOfProcess(EndProcess end);

 private:
  void Loop() COHORT_EXCLUDES(mu_);

  Mutex mu_;
  CondVar changed_;
  int lanes_ COHORT_GUARDED_BY(mu_) = 0;  // that have not ended
  bool armed_ COHORT_GUARDED_BY(mu_) = false;
  std::string why_ COHORT_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace cohort::collective
