// Queues: elements that steps put in and other steps take out, in TensorFlow's tf.queue. A queue lives in the
// ResourceManager of the task of its device, under its container and name, and outlives sessions of a cluster.
//
//   const ops::FIFOQueue queue(g, {DType::kFloat32}, {.capacity = 10, .shapes = {Shape{}}});
//   Node* put = queue.Enqueue({x});
//   const Output next = queue.Dequeue()[0];
//
// A step that waits for room or for an element blocks no thread. Its wait ends with CancelledError if its session is
// closed, with DeadlineExceededError at its timeout, and with AbortedError if the queue's container is cleared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

struct COHORT_EXPORT QueueOptions {
  int64_t capacity = -1;  // the largest number of elements; -1: no limit
  // The shape of each component; all dimensions are known. Empty: components may have any shapes, but DequeueMany,
  // DequeueUpTo and EnqueueMany then cannot check them, and the first two fail.
  std::vector<Shape> shapes = {};
  std::string shared_name = "";  // "": the name of the node
  std::string container = "";    // "": the default container
  NodeName name = "";            // "": "fifo_queue" or "random_shuffle_queue"
};

struct COHORT_EXPORT DequeueOptions {
  // The queue keeps the element for the session until the session's next such dequeue. If the session ends before (its
  // process dies, or it is closed), the element returns to the front of the queue. A session in a process that has lost
  // its connection ends after ServerOptions::reconnect_limit.
  bool held_by_session = false;
};

// A queue of a graph. Cheap to copy. It can be used while its graph lives. Its nodes are placed beside the queue.
// Enqueues are served in the order in which they reach the queue, and so are dequeues.
class COHORT_EXPORT Queue {
 public:
  Output handle() const { return handle_; }  // resource scalar
  const std::string& name() const { return handle_.node->name(); }
  const std::vector<DType>& dtypes() const { return dtypes_; }
  const std::vector<Shape>& shapes() const { return shapes_; }

  // Add a node that puts one element, or the rows of axis 0 as elements, into the queue. The step waits while the queue
  // is full. It fails with CancelledError "FIFOQueue '...' is closed." on a closed queue, and with InvalidArgumentError
  // if number, dtypes or shapes of the components do not fit.
  Node* Enqueue(const std::vector<Output>& components, const NodeName& name = "") const;
  Node* EnqueueMany(const std::vector<Output>& components, const NodeName& name = "") const;
  // Returns the components of the next element. The step waits until there is one. It fails with OutOfRangeError "...
  // is closed and has insufficient elements (requested 1, current size 0)" if the queue is closed and empty.
  std::vector<Output> Dequeue(const DequeueOptions& options = {}, const NodeName& name = "") const;
  // Returns the components of the next `n` (int32 scalar) elements, with a new axis 0. The step waits until there are
  // so many. If the queue is closed with fewer elements, DequeueMany fails with OutOfRangeError, and the elements stay.
  // DequeueUpTo then returns the elements that are left, and fails only if there is none. The queue needs shapes.
  std::vector<Output> DequeueMany(const Operand& n, const NodeName& name = "") const;
  std::vector<Output> DequeueUpTo(const Operand& n, const NodeName& name = "") const;
  Output Size(const NodeName& name = "") const;      // int32 scalar
  Output IsClosed(const NodeName& name = "") const;  // bool scalar
  // Adds a node that closes the queue: later enqueues fail. Enqueues that wait are finished first, or fail with
  // CancelledError if `cancel_pending_enqueues`. Elements that are in the queue can still be dequeued.
  Node* Close(bool cancel_pending_enqueues = false, const NodeName& name = "") const;
  // Adds a node that removes all elements, forgets what sessions hold (DequeueOptions), and opens the queue if it is
  // closed. Enqueues that wait fail with CancelledError; dequeues go on waiting. TensorFlow has no such op.
  Node* Reset(const NodeName& name = "") const;
  // Adds a node that makes all dequeues of its step's session fail with the error `code` (int32 scalar, a number of
  // Code other than kOk) and `message` (string scalar): those that wait, and later ones until the queue is reset or the
  // session ends. Other sessions are not concerned. TensorFlow has no such op.
  Node* FailSession(const Operand& code, const Operand& message, const NodeName& name = "") const;

 protected:
  Queue(Output handle, std::vector<DType> dtypes, std::vector<Shape> shapes);

 private:
  NodeBuilder Add(const char* op, const char* suffix, const NodeName& name) const;
  std::vector<Output> AddDequeue(const char* op, const char* suffix, const Operand& n, const NodeName& name) const;

  Output handle_;
  std::vector<DType> dtypes_;
  std::vector<Shape> shapes_;
};

// A queue whose elements leave in the order in which they came. Throws InvalidArgumentError if there is no dtype, if
// the number of shapes is not that of the dtypes, or if a dimension is unknown.
class COHORT_EXPORT FIFOQueue final : public Queue {
 public:
  FIFOQueue(Graph& graph, const std::vector<DType>& dtypes, const QueueOptions& options = {});
};

// A queue whose elements leave in random order. While the queue is open, `min_after_dequeue` elements always stay, so
// that the order is well mixed. `seed` and the graph's seed decide the order as for other random ops.
class COHORT_EXPORT RandomShuffleQueue final : public Queue {
 public:
  RandomShuffleQueue(Graph& graph, int64_t min_after_dequeue, const std::vector<DType>& dtypes,
                     const QueueOptions& options = {}, int64_t seed = 0);
};

}  // namespace cohort::ops
