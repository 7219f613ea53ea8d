// StepRendezvous: the rendezvous of one step on one task. Edges inside the task meet here; values for another task
// leave through a sink.
#pragma once

#include <functional>
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

// Thread-safe, except Reset.
class StepRendezvous final : public Rendezvous {
 public:
  // Values for task `dst_task`; must not block.
  using Sink = std::function<void(int dst_task, std::vector<EdgeValue> values)>;

  // `routes` outlives the rendezvous.
  StepRendezvous(const std::vector<EdgeRoute>& routes, int self);
  // Makes it fit for another step: nothing sent, nothing awaited, not aborted.
  void Reset(Sink sink);

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
  Sink sink_;
  Mutex mu_;
  std::vector<Slot> slots_ GUARDED_BY(mu_);
  std::vector<std::pair<int, std::vector<EdgeValue>>> held_ GUARDED_BY(mu_);  // by destination
  Status aborted_ GUARDED_BY(mu_);
};

}  // namespace cohort
