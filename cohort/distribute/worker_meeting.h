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

// The error for values that differ between processes. All processes throw it in the same call. After that they may make
// further calls.
class WorkersDisagreeError final : public InvalidArgumentError {
 public:
  using InvalidArgumentError::InvalidArgumentError;
};

// The object through which one process takes part in the meeting. Every process has to make the same calls in the same
// order. Each call waits until all processes make it. If there is only one process, a call returns this process's own
// value at once. The Strategy owns the meeting. Thread-safe; calls of several threads run one after another. The calls
// throw what a failed collective throws: UnavailableError that names the lost process, or DeadlineExceededError after
// the strategy's timeout. After another process has called Strategy::Fail, all calls throw an error that names this
// other process and has the code and the message of its failure.
class WorkerMeeting {
 public:
  // `keys` belong to the group of the first devices of all processes. `target` is the target of this process's server,
  // and `device` its first device.
  WorkerMeeting(ops::CollectiveKeys keys, std::string target, std::string device);
  ~WorkerMeeting();

  int size() const { return static_cast<int>(keys_.members.size()); }
  // Returns the texts of all processes, in the order of the processes.
  std::vector<std::string> Gather(const std::string& mine);
  // Returns true if `mine` is true in at least one process.
  bool Any(bool mine);
  // Waits until all processes have called it.
  void Barrier();
  // Compares `facts`, pairs of a name and a value, of all processes. Throws WorkersDisagreeError that shows the first
  // fact in which two processes differ, those two processes, and their values. `what` begins its message, for example
  // "[keras/fit] expected all workers to call Fit together". If the collective fails, for example because a process is
  // lost, throws its error, with `what` before the message.
  void ExpectAgreement(const std::string& what, const std::vector<std::pair<std::string, std::string>>& facts);
  // A process that fails calls this instead of Gather or ExpectAgreement. The Gather or ExpectAgreement of the other
  // processes then throws an error with the code and the message of `why`. Waits at most some seconds for the other
  // processes. If they do not take part in this time, logs a message and returns.
  void AnnounceFailure(const Status& why);
  // Returns "worker 1 (/job:worker/task:1/device:CPU:0)".
  std::string Describe(int worker) const;
  // Returns "[distribute] worker 1 (...) has failed: " and `why`.
  std::string FailureOf(int worker, const std::string& why) const;

 private:
  struct Calls;
  Calls& calls() COHORT_REQUIRES(mu_);
  // `run` has the options for the steps that GatherTensor and GatherBytes run.
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
