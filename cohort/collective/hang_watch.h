// HangWatch: finds out that the program of a member hangs in its own code, where no step and no collective sees it.
// Internal to collective/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "cohort/collective/membership.h"
#include "cohort/core/mutex.h"
#include "cohort/core/process/hung_thread.h"

namespace cohort::collective {

// Judges two programs, each only after the group's limit without progress:
// - that of a member that others wait for when the group forms (FindHungMember). A member that has not joined may still
//   load its data, so it is judged by what its own process says: that a thread of it hangs.
// - that of this process, if the group has failed and the program calls nothing (LookAtProgram). A program learns of
//   the failure by its next call. If it makes none although another member runs and has to wait for it, it hangs: this
//   process then has a HungThread, so that the launcher ends it. The HungThread goes when the program calls something.
//
// A program is not judged if it knows of the failure, if it is in a call, if it has no open session and holds no group,
// if training is done, or if no other member runs.
// GroupCore owns it. Thread-safe; FindHungMember and LookAtProgram may wait some seconds, and only the watchdog's
// thread calls them.
class HangWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Questions that the group's node answers. They do not throw.
  struct Node {
    // Returns what a task does if it says that it hangs, and no launcher ends it. Otherwise returns "".
    std::function<std::string(const std::string& task)> describe_hang;
    // Returns whether a process of the task runs.
    std::function<bool(const std::string& task)> runs;
    // Returns whether the chief has said that training is done.
    std::function<bool()> training_done;
  };

  // `membership` must live longer. If `limit` is 0, nobody is judged. The wait for members begins now.
  HangWatch(const Membership& membership, std::chrono::milliseconds limit) : membership_(membership), limit_(limit) {}

  // Without a node nobody is judged. `held_by_program` says that the program holds the group, and that it does not need
  // a session.
  void SetNode(Node node, bool held_by_program) COHORT_EXCLUDES(mu_);

  // The group has failed. Call it once, with any locks held.
  void OnFailed() COHORT_EXCLUDES(mu_);
  // The program knows that the group has failed, or has left it. Returns false if that was known.
  bool OnTold() COHORT_EXCLUDES(mu_);
  bool told() const COHORT_EXCLUDES(mu_);

  // Returns the error with which the group has to fail because a member that is waited for hangs, or ok.
  Status FindHungMember() COHORT_EXCLUDES(mu_);
  // Judges the program of this process.
  void LookAtProgram() COHORT_EXCLUDES(mu_);

 private:
  // Returns whether the program has been quiet for the limit. If it was not, and could not be judged now, its time
  // begins again.
  bool IsQuiet(const Node& node) COHORT_EXCLUDES(mu_);
  bool AnotherRuns(const Node& node) const;

  const Membership& membership_;
  const std::chrono::milliseconds limit_;
  const Clock::time_point start_ = Clock::now();
  mutable Mutex mu_;
  Node node_ COHORT_GUARDED_BY(mu_);
  bool held_by_program_ COHORT_GUARDED_BY(mu_) = false;
  bool failed_ COHORT_GUARDED_BY(mu_) = false;
  bool told_ COHORT_GUARDED_BY(mu_) = false;
  bool came_back_ COHORT_GUARDED_BY(mu_) = false;  // the program has called something since the failure
  uint64_t stamp_ COHORT_GUARDED_BY(mu_) = 0;      // of ProgramActivity, when the group failed
  Clock::time_point quiet_since_ COHORT_GUARDED_BY(mu_);
  std::unique_ptr<HungThread> hung_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::collective
