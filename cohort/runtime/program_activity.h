// ProgramActivity: whether the program of this process calls its sessions and groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

class Master;

// Tells whether the program of this process comes back to the library after a failure, or hangs in its own code. It is
// asked seldom, and costs a step nothing: it reads the counters that sessions have. There is one object for a process.
// Open sessions are added to it and removed. Thread-safe.
class ProgramActivity {
 public:
  static ProgramActivity& Global();

  // Exists as long as a thread of the program is in a call that runs no step and may wait long, such as Server::Join.
  class Call {
   public:
    Call() { ++Global().calls_; }
    ~Call() { --Global().calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
  };

  // Adds an open session. Requires: Remove is called before the master is destroyed.
  void Add(const Master& master) COHORT_EXCLUDES(mu_);
  // Removes a session, which closes. Does nothing if the session is not there.
  void Remove(const Master& master) COHORT_EXCLUDES(mu_);
  // The program begins a collective without a session.
  void OnCollective() { collectives_.fetch_add(1, std::memory_order_relaxed); }

  // The program has said that training is done (Server::AnnounceDone).
  void OnTrainingDone() { training_done_ = true; }

  // Returns a number that changes when the program makes or closes a session, or begins a step or a collective. May be
  // called with any lock held.
  uint64_t Stamp() const COHORT_EXCLUDES(mu_);
  // What the program does now.
  struct Report {
    int64_t sessions = 0;        // that are open
    bool training_done = false;  // OnTrainingDone was called
    bool in_call = false;        // a step of a session runs that the program has to wait for, or there is a Call
    uint64_t stamp = 0;          // see Stamp
  };
  Report Collect() const COHORT_EXCLUDES(mu_);

 private:
  ProgramActivity() = default;

  std::atomic<int> calls_{0};
  std::atomic<uint64_t> collectives_{0};
  std::atomic<bool> training_done_{false};
  mutable Mutex mu_;
  std::vector<const Master*> masters_ COHORT_GUARDED_BY(mu_);  // of the open sessions
  uint64_t changes_ COHORT_GUARDED_BY(mu_) = 0;                // sessions that were made, and sessions that were closed
  uint64_t starts_of_closed_ COHORT_GUARDED_BY(mu_) = 0;       // what Master::num_starts was at the end
};

}  // namespace cohort
