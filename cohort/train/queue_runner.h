// RepeatOp: runs one op of a session again and again, without a thread. QueueRunner: does so for the op that fills a
// queue, as TensorFlow's tf.train.QueueRunner.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/ops/queues.h"
#include "cohort/runtime/session.h"
#include "cohort/train/coordinator.h"

namespace cohort::train {

// Runs `op` again and again until a run fails, and then calls `on_end` once with the error. Each run begins when the
// one before has ended, on the thread that has ended it. If all of `op` is on one device, the device's task begins the
// runs by itself, and the session sends and gets no messages about them (RunOptions::repeat_on_task). If not, the first
// run begins on the calling thread; so `op` should then be one that soon has to wait, or this function does not return.
// The session need not be told to stop: when it closes, the run fails, and `on_end` has returned when Session::Close
// returns. `on_end` must not wait and must not throw, but may start runs of the session.
COHORT_EXPORT void RepeatOp(Session& session, Node* op, std::function<void(const Status&)> on_end);

// Fills a queue: runs the enqueue ops, each again and again, while a session is open. The program owns it. Start may be
// called for one session after another.
class COHORT_EXPORT QueueRunner {
 public:
  // Adds nodes that close the queue. Throws InvalidArgumentError if there is no enqueue op, or if the queue has no
  // capacity, because its enqueues would never wait.
  QueueRunner(const ops::Queue& queue, std::vector<Node*> enqueue_ops);

  // Starts the ops. If one of them ends with OutOfRangeError or CancelledError (its data have ended, or the queue was
  // closed), it is not run again; after the last one the queue is closed. After any other error the queue is closed,
  // too, and the coordinator is asked to stop with that error. Both must outlive the open session.
  void Start(Session& session, Coordinator& coordinator) const;

 private:
  std::vector<Node*> enqueue_ops_;
  Node* close_ = nullptr;   // after the enqueues that wait
  Node* cancel_ = nullptr;  // at once
};

}  // namespace cohort::train
