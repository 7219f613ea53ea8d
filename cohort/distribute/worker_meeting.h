// WorkerMeeting: how the processes of a strategy agree on things outside of their graphs: that they run the same
// program on the same data, that the data have ended, that they are done.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/collective.h"
#include "cohort/runtime/session.h"

namespace cohort::distribute {

// All processes throw it. They may continue with another call.
class WorkersDisagreeError final : public InvalidArgumentError {
 public:
  using InvalidArgumentError::InvalidArgumentError;
};

// The part of one process in the meeting. Every process has to make the same calls in the same order. With one process
// the calls do nothing. The Strategy owns it. Thread-safe; the calls of one process run one after another. A call
// throws what a failed collective throws: UnavailableError that names the lost process, or DeadlineExceededError. If
// another process has failed (AnnounceFailure, Strategy::Fail), a call throws an error with the code of that failure,
// which names the process and its error.
class WorkerMeeting {
 public:
  // `keys` are those of the group of all processes' first devices. `target` and `device` are this process's.
  WorkerMeeting(ops::CollectiveKeys keys, std::string target, std::string device);
  ~WorkerMeeting();

  int size() const { return static_cast<int>(keys_.members.size()); }
  // Returns the texts that all processes have given, by process.
  std::vector<std::string> Gather(const std::string& mine);
  // Returns whether `mine` is true at any process.
  bool Any(bool mine);
  // Waits until all processes have called it.
  void Barrier();
  // Compares named values of all processes. Throws WorkersDisagreeError that names the first different value, the
  // processes, and their values. `what` begins every message, for example "[keras/fit] expected all workers to call Fit
  // together". If a process does not make the call, throws the error of the failed collective, with `what` before it.
  void ExpectAgreement(const std::string& what, const std::vector<std::pair<std::string, std::string>>& facts);
  // A process that fails calls this in place of Gather or ExpectAgreement. Those calls at the other processes then
  // throw this failure. Waits some seconds for them at most. Throws nothing.
  void AnnounceFailure(const Status& why);
  // Returns "worker 1 (/job:worker/task:1/device:CPU:0)".
  std::string Describe(int worker) const;
  // Returns "[distribute] worker 1 (...) has failed: " and `why`.
  std::string FailureOf(int worker, const std::string& why) const;

 private:
  struct Calls;
  Calls& calls() COHORT_REQUIRES(mu_);
  // `run` has the options of each step that these functions run.
  Tensor GatherTensor(const Tensor& mine, const RunOptions& run = {}) COHORT_REQUIRES(mu_);
  std::vector<std::string> GatherBytes(const std::string& mine, const RunOptions& run = {}) COHORT_EXCLUDES(mu_);
  // Returns the texts in the results of GatherBytes. If a process has announced a failure, throws that instead.
  std::vector<std::string> TextsOf(const std::vector<std::string>& announcements) const;

  const ops::CollectiveKeys keys_;
  const std::string target_;
  const std::string device_;
  Mutex mu_;
  std::unique_ptr<Calls> calls_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::distribute
