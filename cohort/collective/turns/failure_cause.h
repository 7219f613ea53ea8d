// FailureCause: finds out why a connection of a library has broken. Internal to collective/.
#pragma once

#include <chrono>

#include "cohort/collective/engine.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// A library such as Gloo only sees that a connection of its own has broken. A peer that ends closes the library's
// connections and the group's, and a peer that fails sends the reason over the group's; either may come first. So a
// thread that gets the library's error waits until the group has failed for the real reason. The engine owns it.
// Thread-safe.
class FailureCause {
 public:
  // Waits for at most `limit`. `host` must live longer.
  FailureCause(EngineHost& host, std::chrono::seconds limit) : host_(host), limit_(limit) {}

  // If `seen`, an error that the library has reported, is kUnavailable, returns when the group has failed or the limit
  // has passed; else at once. Call it from a thread that may block, such as a lane's.
  void Await(const Status& seen) COHORT_EXCLUDES(mu_);
  // The engine hears that a member may be gone. If a thread waits, fails the group with the name of the first one that
  // is gone.
  void OnPeerGone() COHORT_EXCLUDES(mu_);
  // The group has failed. All threads that wait go on.
  void OnFailed() COHORT_EXCLUDES(mu_);

 private:
  EngineHost& host_;
  const std::chrono::seconds limit_;
  Mutex mu_;
  CondVar changed_;
  bool failed_ COHORT_GUARDED_BY(mu_) = false;
  int waiting_ COHORT_GUARDED_BY(mu_) = 0;
};

}  // namespace cohort::collective
