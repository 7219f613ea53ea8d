// QueueResource: the elements of a FIFOQueueV2 or a RandomShuffleQueueV2, and the kernels that wait for elements or for
// room.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/philox.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"
#include "cohort/runtime/data_flow/pending_kernel.h"

namespace cohort {

// The attributes of a queue.
struct QueueSpec {
  std::string name;
  std::vector<DType> component_types;
  std::vector<Shape> shapes;  // empty: elements may have any shapes, and only one element is dequeued at a time
  int64_t capacity = -1;      // less than 0: no limit
  int64_t min_after_dequeue = 0;
  int64_t seed = 0;
  int64_t seed2 = 0;
};

// A queue of elements; an element is one tensor for each component. The semantics are TensorFlow's. Enqueues are served
// in the order of their calls, and so are dequeues. A kernel that has to wait is kept in a list, and no thread is
// blocked. Its wait ends with an error if its step is cancelled, if the queue is closed, or if the container of the
// queue is cleared. The task's ResourceManager owns the queue. Thread-safe. Functions that take a PendingKernel end it
// now or later, on any thread; they may also continue other steps on the calling thread. They must be called on an
// object that a shared_ptr owns.
class QueueResource : public Resource, public std::enable_shared_from_this<QueueResource> {
 public:
  using Element = std::vector<Tensor>;

  // The request of a dequeue.
  struct Request {
    int64_t count = 1;
    bool batched = false;      // outputs have a new axis 0 of the size `count`
    bool allow_fewer = false;  // if the queue is closed, fewer elements than `count` are enough, but at least one
    // The queue remembers the last element that the session has dequeued in this way. If the step of the dequeue fails,
    // or the session ends before its next such dequeue, the element returns to the front of the queue, unless the queue
    // was closed or reset meanwhile.
    bool held_by_session = false;
  };

  ~QueueResource() override = default;
  const QueueSpec& spec() const { return spec_; }
  // Throws InvalidArgumentError, with both values, if `wanted` has another capacity, other component types, other
  // shapes or another min_after_dequeue than the queue.
  void CheckIsAs(const QueueSpec& wanted) const;
  // Throws InvalidArgumentError if `element` has another number of components, or other dtypes or shapes, than the
  // queue. With `batched`, each component has one more dimension in front, and all components have the same number of
  // rows.
  void CheckElement(const Element& element, bool batched) const;

  // Adds the elements. The kernel ends when all of them are in the queue. It fails with kCancelled if the queue is
  // closed; the elements that are in the queue already stay. Requires: CheckElement accepts the elements.
  void Enqueue(PendingKernel kernel, std::vector<Element> elements) COHORT_EXCLUDES(mu_);
  // Takes elements out and makes them the kernel's outputs. Fails with kOutOfRange if the queue is closed and has too
  // few elements; it then keeps those that it has. Fails with kInvalidArgument for a batch of a queue without shapes.
  void Dequeue(PendingKernel kernel, const Request& request) COHORT_EXCLUDES(mu_);
  // Closes the queue after the enqueues that wait, or at once if `cancel_pending_enqueues`, which makes them fail.
  // Fails with kCancelled if the queue is closed and `cancel_pending_enqueues` is false.
  void Close(PendingKernel kernel, bool cancel_pending_enqueues) COHORT_EXCLUDES(mu_);
  // Removes all elements, forgets what sessions hold, and opens the queue if it is closed. Enqueues that wait fail with
  // kCancelled. Dequeues go on waiting.
  void Reset(PendingKernel kernel) COHORT_EXCLUDES(mu_);
  // Makes the dequeues of the kernel's session fail with `error`: those that wait, and later ones until Reset or the
  // end of the session.
  void FailSession(PendingKernel kernel, const Status& error) COHORT_EXCLUDES(mu_);
  int64_t size() const COHORT_EXCLUDES(mu_);
  bool is_closed() const COHORT_EXCLUDES(mu_);

  std::string Describe() const override;
  void OnRemoved(const std::string& container) override COHORT_EXCLUDES(mu_);
  void OnSessionEnded(uint64_t session) override COHORT_EXCLUDES(mu_);
  void OnStepFailed(uint64_t session, int64_t step) override COHORT_EXCLUDES(mu_);

 protected:
  explicit QueueResource(QueueSpec spec) : spec_(std::move(spec)) {}
  // Returns the name of the class: "FIFOQueue".
  virtual const char* kind() const = 0;
  // Returns how many elements may be taken out now.
  virtual int64_t Available() const COHORT_REQUIRES(mu_) = 0;
  // Removes one element and returns it. Requires: there is one.
  virtual Element Pop() COHORT_REQUIRES(mu_) = 0;

  mutable Mutex mu_;
  std::deque<Element> elements_ COHORT_GUARDED_BY(mu_);
  bool closed_ COHORT_GUARDED_BY(mu_) = false;

 private:
  // A kernel that waits for room (Put), or for elements (Take). A Put without elements closes the queue.
  struct Put {
    uint64_t id;
    PendingKernel kernel;
    std::deque<Element> elements;
    bool closes;
  };
  struct Take {
    uint64_t id;
    PendingKernel kernel;
    Request request;
    std::vector<Element> taken;
  };
  // The element that a session holds, and the step that has dequeued it.
  struct Held {
    int64_t step;
    Element element;
  };
  // A kernel that has left the lists and is to be ended without the lock.
  struct Ended {
    PendingKernel kernel;
    Status status;
    std::vector<Element> elements;
    bool batched;
  };
  using EndedList = std::vector<Ended>;

  // Serves the kernels that wait, as far as possible.
  void Serve(EndedList* ended) COHORT_REQUIRES(mu_);
  // Serve the first kernel of a list. Return whether it has ended.
  bool ServePut(EndedList* ended) COHORT_REQUIRES(mu_);
  bool ServeTake(EndedList* ended) COHORT_REQUIRES(mu_);
  void Return(std::vector<Element>* taken) COHORT_REQUIRES(mu_);
  void Remember(const Take& take) COHORT_REQUIRES(mu_);
  // Puts the element that the session holds, if it holds one, to the front of the queue.
  void ReturnHeld(uint64_t session, EndedList* ended) COHORT_REQUIRES(mu_);
  // Returns the error of the session of a Take (FailSession), or OK.
  Status ErrorOf(const Take& take) const COHORT_REQUIRES(mu_);
  // Ends the kernels that wait for room.
  void FailPuts(const Status& why, EndedList* ended) COHORT_REQUIRES(mu_);
  // Return the list of Puts or that of Takes.
  std::deque<Put>& ListOf(const Put&) COHORT_REQUIRES(mu_) { return puts_; }
  std::deque<Take>& ListOf(const Take&) COHORT_REQUIRES(mu_) { return takes_; }
  // Adds a kernel to its list and serves both lists.
  template <typename Waiting>
  void Add(Waiting waiting) COHORT_EXCLUDES(mu_);
  // Ends a kernel that waits, because its step was cancelled. Does nothing if it does not wait any more.
  void Cancel(uint64_t id, const Status& why) COHORT_EXCLUDES(mu_);
  // Ends a kernel that has left its list before it was served. A Take returns what it has taken.
  void Drop(Put put, const Status& why, EndedList* ended) COHORT_REQUIRES(mu_);
  void Drop(Take take, const Status& why, EndedList* ended) COHORT_REQUIRES(mu_);
  // Ends the kernels, one after another.
  void EndAll(EndedList ended) COHORT_EXCLUDES(mu_);

  const QueueSpec spec_;
  Status removed_ COHORT_GUARDED_BY(mu_);  // why the queue cannot be used any more, or OK
  uint64_t next_id_ COHORT_GUARDED_BY(mu_) = 1;
  std::deque<Put> puts_ COHORT_GUARDED_BY(mu_);
  std::deque<Take> takes_ COHORT_GUARDED_BY(mu_);
  std::map<uint64_t, Held> held_ COHORT_GUARDED_BY(mu_);      // by session
  std::map<uint64_t, Status> failed_ COHORT_GUARDED_BY(mu_);  // by session: the error of its dequeues
};

// A queue whose elements leave in the order in which they came.
class FifoQueueResource final : public QueueResource {
 public:
  explicit FifoQueueResource(QueueSpec spec) : QueueResource(std::move(spec)) {}

 private:
  const char* kind() const override { return "FIFOQueue"; }
  int64_t Available() const override COHORT_REQUIRES(mu_) { return static_cast<int64_t>(elements_.size()); }
  Element Pop() override COHORT_REQUIRES(mu_);
};

// A queue whose elements leave in random order, by TensorFlow's generator. While it is open, min_after_dequeue elements
// always stay. Seeds of 0 and 0 mean a random seed.
class ShuffleQueueResource final : public QueueResource {
 public:
  explicit ShuffleQueueResource(QueueSpec spec);

 private:
  const char* kind() const override { return "RandomShuffleQueue"; }
  int64_t Available() const override COHORT_REQUIRES(mu_) {
    const auto size = static_cast<int64_t>(elements_.size());
    return closed_ ? size : size - spec().min_after_dequeue;
  }
  Element Pop() override COHORT_REQUIRES(mu_);

  PhiloxWords random_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
