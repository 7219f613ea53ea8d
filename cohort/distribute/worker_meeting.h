// WorkerMeeting: how the processes of a strategy agree on things outside of their graphs - that they run the same
// program on the same data, when the data ends, that they are done. Every process makes the same calls in the same
// order. With one process there is nothing to agree on.
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

// Thrown at all processes: they are where they can go on together with something else.
class WorkersDisagreeError final : public InvalidArgumentError {
 public:
  using InvalidArgumentError::InvalidArgumentError;
};

// Thread-safe; calls of one process follow one another. All throw what a failed collective throws: UnavailableError
// that names the process which was lost, DeadlineExceededError; and where another process has failed (AnnounceFailure,
// Strategy::Fail) an error with its code that says who and why.
class WorkerMeeting {
 public:
  // `keys`: of the group of the processes' first devices.
  WorkerMeeting(ops::CollectiveKeys keys, std::string target, std::string device);
  ~WorkerMeeting();

  int size() const { return static_cast<int>(keys_.members.size()); }
  // Everybody's text, by process.
  std::vector<std::string> Gather(const std::string& mine);
  // Whether any process says yes.
  bool Any(bool mine);
  // Ends when all have come.
  void Barrier();
  // Compares named values of all processes. Throws WorkersDisagreeError that names the first value that differs, the
  // processes and what they have. `what` begins all messages: "[keras/fit] expected all workers to call Fit together".
  // If a process does not make the call, the error of the failed collective follows `what`.
  void ExpectAgreement(const std::string& what, const std::vector<std::pair<std::string, std::string>>& facts);
  // In place of a call of Gather or ExpectAgreement that the others make: there it throws. Waits for them, but not for
  // ever; throws nothing.
  void AnnounceFailure(const Status& why);
  // "worker 1 (/job:worker/task:1/device:CPU:0)".
  std::string Describe(int worker) const;
  // "[distribute] worker 1 (...) has failed: " and `why`.
  std::string FailureOf(int worker, const std::string& why) const;

 private:
  struct Calls;
  Calls& calls() REQUIRES(mu_);
  // `run`: of each of the steps it takes.
  Tensor GatherTensor(const Tensor& mine, const RunOptions& run = {}) REQUIRES(mu_);
  std::vector<std::string> GatherTexts(const std::string& mine, const RunOptions& run = {}) EXCLUDES(mu_);
  // Removes the byte in front of each text that says what it is. Throws the failure that a worker has announced
  // instead.
  void OpenTexts(std::vector<std::string>* texts) const;

  const ops::CollectiveKeys keys_;
  const std::string target_;
  const std::string device_;
  Mutex mu_;
  std::unique_ptr<Calls> calls_ GUARDED_BY(mu_);
};

}  // namespace cohort::distribute
