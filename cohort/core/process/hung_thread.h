// HungThread: says that a thread of this process does not come back.
#pragma once

#include <string>

namespace cohort {

// Exists as long as a thread of this process hangs: a kernel has not returned although its step was given up, or the
// program has called nothing for too long after a group of it has failed. Nothing can end such a thread but the end of
// the process, and the process cannot end in good order. So a process with a HungThread does not answer the launcher's
// questions for its health, and the launcher ends it (`--unhealthy_after`). The object that has found the thread owns
// it: the ProgressWatch of a session, a step, or a group. Thread-safe.
class HungThread {
 public:
  // `what` says which thread hangs, as a clause: "a kernel of a step that was given up does not return".
  explicit HungThread(std::string what);
  ~HungThread();
  HungThread(const HungThread&) = delete;
  HungThread& operator=(const HungThread&) = delete;

  static bool Any();
  // Returns the clauses of all that exist, the earliest first and with "; " between them, or "" if there are none.
  static std::string DescribeAll();
};

}  // namespace cohort
