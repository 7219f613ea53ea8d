// Rendezvous: passes the values of edges between partitions, within one step.
#pragma once

#include <cstdint>
#include <functional>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"

namespace cohort {

// The number of an edge. It is unique within the executable that a session makes for one signature.
using EdgeId = int32_t;

// Passes the values of one step from the partitions that send them to those that receive them. Thread-safe. Each edge
// is sent once and received once in a step. The receiver may call before the sender. The step owns the rendezvous.
class Rendezvous {
 public:
  using Done = std::function<void(const Status&, const Tensor&)>;

  virtual ~Rendezvous() = default;
  // Gives the value to the receiver of the edge. Never waits. Shares the bytes of the tensor and does not copy them.
  virtual void Send(EdgeId edge, const Tensor& value) = 0;
  // Calls `done` once with the value: before RecvAsync returns, or later on the thread that sends or aborts.
  virtual void RecvAsync(EdgeId edge, Done done) = 0;
  // Sends the values that Send has collected to send them together. The executor calls it when no node of the partition
  // can run.
  virtual void Flush() {}
  // Calls the `done` of all present and later receivers with `why`.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace cohort
