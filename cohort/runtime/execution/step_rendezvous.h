// StepRendezvous: the rendezvous of one step on one task. Edges inside the task meet here; values for another task
// leave through the executable's ValueSender.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/rendezvous.h"

namespace cohort {

// Where an edge runs, by index into the session's list of tasks.
struct EdgeRoute {
  int src_task = 0;
  int dst_task = 0;
  std::string tensor_name;  // for messages
};

struct EdgeValue {
  EdgeId edge;
  Tensor value;  // in host memory
};

// Sends the values of one executable's steps to other tasks. Thread-safe.
class ValueSender {
 public:
  virtual ~ValueSender() = default;
  // `dst_task`: as in EdgeRoute. Must not block.
  virtual void SendValues(int dst_task, int64_t step, std::vector<EdgeValue> values) = 0;
};

// Thread-safe, except Reset.
class StepRendezvous final : public Rendezvous {
 public:
  // `routes` outlives the rendezvous.
  StepRendezvous(const std::vector<EdgeRoute>& routes, int self);
  // Makes it fit for another step: nothing sent, nothing awaited, not aborted. `sender` gets what the step sends to
  // other tasks; it may be null if no route leaves this task. It outlives the step.
  void Reset(ValueSender* sender, int64_t step);

  // A value below 64 KiB for another task is held until Flush, so that what belongs together travels together.
  void Send(EdgeId edge, const Tensor& value) override;
  void RecvAsync(EdgeId edge, Done done) override;
  void Flush() override;
  void Abort(const Status& why) override;
  // What Flush would send to task `dst_task`, taken out: it travels with something else.
  std::vector<EdgeValue> TakeHeld(int dst_task);
  // Names of the tensors that are waited for and have not come, for a report of a step that hangs.
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
  std::vector<std::pair<int, std::vector<EdgeValue>>> held_ COHORT_GUARDED_BY(mu_);  // by destination
  Status aborted_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
