// StepRendezvous: the rendezvous of one step on one task. Values for another task are passed to the executable's
// ValueSender.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/rendezvous.h"

namespace cohort {

// Source and destination of an edge, as indices into the list of tasks of the executable (ExecutableSpec::tasks).
struct EdgeRoute {
  int src_task = 0;
  int dst_task = 0;
  std::string tensor_name;  // for error messages
};

// The value of one edge, for another task.
struct EdgeValue {
  EdgeId edge;
  Tensor value;  // in host memory
};

// Sends values of one executable's steps to other tasks. The executable owns it. Thread-safe.
class ValueSender {
 public:
  virtual ~ValueSender() = default;
  // Sends `values` to the task with index `dst_task` (as in EdgeRoute). Must not wait.
  virtual void SendValues(int dst_task, int64_t step, std::vector<EdgeValue> values) = 0;
};

// Passes the values of one step; Reset makes it ready for the next. The object that an Executable keeps for a step owns
// it; this object, too, is used for one step after another. All methods but Reset are thread-safe. From Abort until
// Reset, values are ignored, and receivers get the error of Abort.
class StepRendezvous final : public Rendezvous {
 public:
  // `routes` has the routes of all edges, and must live longer than the rendezvous. `self` is the index of this task.
  StepRendezvous(const std::vector<EdgeRoute>& routes, int self);
  // Makes the rendezvous ready for another step: afterwards it has no values and no receivers, and is not aborted.
  // Requires: the step before has ended. `sender` sends values to other tasks and must live longer than the step. It
  // may be null if no route leaves this task.
  void Reset(ValueSender* sender, int64_t step);

  // Gives a value for this task to its receiver, or keeps the value until RecvAsync. Gives a value for another task to
  // the ValueSender: at once if it has 64 KiB or more, otherwise at the next Flush, so that several values travel in
  // one message. Throws InternalError if a value for this task is sent twice, and InvalidArgumentError if a value for
  // another task is a handle.
  void Send(EdgeId edge, const Tensor& value) override;
  void RecvAsync(EdgeId edge, Done done) override;
  void Flush() override;
  void Abort(const Status& why) override;
  // Returns the names of the tensors for which a receiver waits now. Reports of steps that do not end contain them.
  std::vector<std::string> Awaited();

 private:
  struct Slot {
    Tensor value;
    Done waiter;
  };

  const std::vector<EdgeRoute>& routes_;
  const int self_;
  ValueSender* sender_ = nullptr;
  int64_t step_ = 0;
  Mutex mu_;
  std::vector<Slot> slots_ COHORT_GUARDED_BY(mu_);
  std::vector<std::pair<int, std::vector<EdgeValue>>> held_ COHORT_GUARDED_BY(mu_);  // by destination task
  Status aborted_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
