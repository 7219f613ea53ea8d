// StepRendezvous: the rendezvous of one step on one task. Values for another task are passed to the executable's
// ValueSender.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/rendezvous.h"

namespace cohort {

// Source and destination of an edge, as indices into the list of tasks of the signature.
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

// Passes the values of one step. The step owns it. All methods but Reset are thread-safe.
class StepRendezvous final : public Rendezvous {
 public:
  // `routes` must live longer than the rendezvous.
  StepRendezvous(const std::vector<EdgeRoute>& routes, int self);
  // Makes it ready for another step: it has no values and no receivers, and is not aborted. `sender` sends values to
  // other tasks and must live longer than the step. It may be null if no route leaves this task.
  void Reset(ValueSender* sender, int64_t step);

  // A value of less than 64 KiB for another task is kept until Flush, so that several values travel in one message.
  void Send(EdgeId edge, const Tensor& value) override;
  void RecvAsync(EdgeId edge, Done done) override;
  void Flush() override;
  void Abort(const Status& why) override;
  // Returns the values that Flush would send to task `dst_task`, and forgets them. The caller sends them with another
  // message.
  std::vector<EdgeValue> TakeHeld(int dst_task);
  // Returns the names of the tensors that are awaited and have not come, to report a step that does not end.
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
