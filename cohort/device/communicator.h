// Communicator: the collectives that one member of a group can call. The kernels of collective ops call them, and
// programs may call them too. collective/ implements them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"

namespace cohort {

class Device;

// How a collective joins the elements of several tensors.
enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax, kMean };
// Returns "SUM", "PROD", "MIN", "MAX" or "MEAN".
const char* ReduceOpName(ReduceOp op);

// The collectives that one step of the caller's graph runs with a group. Only collective/ makes and reads schedules
// (collective/schedule.h).
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;
};

// Identifies a collective of a group. All members give the same instance number to the same collective. A later call
// with the same number is the next round of that collective. So a member must wait until its call with a number has
// ended before it makes the next call with this number. The k-th call of a member with a number belongs to the k-th
// call of every other member with that number. Calls with different numbers may overlap, in any order.
struct CollectiveId {
  int64_t instance = 0;
  std::string name;  // for error messages: "gradients/dense/kernel"
  // The schedule: all collectives that one step of the caller's graph runs with the group. Null if they are not known.
  // When two members run this collective together, they compare their schedules. If these differ, the group fails, and
  // the error names the first difference.
  std::shared_ptr<const CollectiveSchedule> schedule = nullptr;
  // The device in whose memory the input may lie (Communicator::TakesDeviceMemory). Null: the input lies in host
  // memory. It must exist until `done` is called.
  Device* device = nullptr;
};

// The collectives of one member. Thread-safe. No call waits. Each call calls `done` exactly once, on any thread,
// perhaps before the call returns. `done` must be quick and must not throw. Almost every failure (a lost member, a
// different shape, a deadline) fails the whole group: at every member, all calls that have not ended and all later
// calls fail. (The exception is an argument that no member could use; see below.) The error names the member, the
// collective, its instance and its round. Callers share the communicator by shared_ptr.
//
// The group reads an input until it calls `done`, and peers may read it a little longer. If the caller wants to write
// into the input after `done`, it must first check that nothing else holds the input (Tensor::OwnsBufferAlone), as for
// every tensor. If the caller moves a tensor in and nothing else holds it, the group may overwrite it. Members in one
// process may get the same tensor as their result. Tensors must have a numeric dtype and lie in host memory, or in the
// memory of CollectiveId::device; bool is allowed in collectives that compute nothing. A result lies in the same memory
// as the input. In device memory it is valid in the order of the device's compute stream. For any other tensor, for a
// root that is no rank, and for rows that the members cannot share equally (ReduceScatterAsync), `done` gets an
// InvalidArgumentError, and the group does not fail.
class Communicator : public Resource {
 public:
  using Done = std::function<void(const Status&, Tensor)>;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns whether inputs may lie in the memory of `device`, which is this member's. If so, they may at every member,
  // and all members have to bring the inputs of one collective in the same kind of memory.
  virtual bool TakesDeviceMemory(const Device& device) const = 0;

  // Reduces the tensors of all members. They must have one dtype and one shape. The result has the same bits at every
  // member. bfloat16 is summed in float32 and rounded once. MEAN is the sum divided by size(), rounded towards zero for
  // integers.
  virtual void AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) = 0;
  // Gives the root's tensor to every member. The other members pass a tensor of the same dtype and shape; its elements
  // do not matter.
  virtual void BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) = 0;
  // Joins the members' tensors [n, ...] to one tensor [size * n, ...], in the order of ranks. A scalar counts as [1].
  virtual void AllGatherAsync(const CollectiveId& id, Tensor input, Done done) = 0;
  // Reduces the members' tensors [size * n, ...]. This member gets the rows [rank * n, (rank + 1) * n) of the result.
  virtual void ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) = 0;
  // Calls `done`, with an undefined tensor, when all members have called BarrierAsync.
  virtual void BarrierAsync(const CollectiveId& id, Done done) = 0;

  // Fails the group for all members, because this member gives up. If the group has failed before, the first reason
  // stays.
  virtual void Abort(const Status& why) = 0;
  // Returns the reason for which the group has failed, or OK if it has not failed. Returns FailedPrecondition if the
  // group no longer exists.
  virtual Status status() const = 0;
};

}  // namespace cohort
