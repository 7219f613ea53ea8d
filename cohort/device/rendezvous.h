// Rendezvous: where the two ends of an edge that crosses devices meet, within one step.
#pragma once

#include <cstdint>
#include <functional>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"

namespace cohort {

// Number of a crossing edge; unique in the executable that a session makes of one (feeds, fetches) signature.
using EdgeId = int32_t;

// Thread-safe. Each edge is sent and received once a step, in either order.
class Rendezvous {
 public:
  using Done = std::function<void(const Status&, const Tensor&)>;

  virtual ~Rendezvous() = default;
  // Never blocks; the tensor's bytes are shared, not copied.
  virtual void Send(EdgeId edge, const Tensor& value) = 0;
  // `done` runs once: at once, or on the thread that sends or aborts. It may run before RecvAsync returns.
  virtual void RecvAsync(EdgeId edge, Done done) = 0;
  // The partition has nothing runnable: what was held back to be sent together leaves now.
  virtual void Flush() {}
  // Wakes all receivers with `why`, now and later.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace cohort
