// Communicator: the collectives that one member of a group of devices can call. Kernels and strategies call them;
// collective/ implements them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"

namespace cohort {

enum class ReduceOp : uint8_t { kSum, kProduct, kMin, kMax, kMean };
// "SUM", "PROD", "MIN", "MAX", "MEAN".
const char* ReduceOpName(ReduceOp op);

// The collectives that one step of the caller's graph runs with a group. Only the implementation of groups makes and
// reads it (collective/schedule.h).
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;
};

// Says which collective of a group a call is. All members give the same instance number to the same collective. Each
// call with a number is the next round of its collective, so a member makes calls of one number one after another, and
// all members make them in the same order. Calls of different numbers may overlap and may be made in any order.
struct CollectiveId {
  int64_t instance = 0;
  std::string name;  // for errors: "gradients/dense/kernel"
  // All collectives that a step of the caller's graph runs with the group. If two members run this collective together
  // but their steps run other collectives that differ, the group fails with the first difference. Null: not known.
  std::shared_ptr<const CollectiveSchedule> schedule = nullptr;
};

// One member's collectives. Thread-safe. No call waits. `done` is called exactly once, on any thread, perhaps before
// the call returns; it must be quick and must not throw. Every failure (a lost member, another shape, a deadline) fails
// the whole group: all calls that have not ended and all later calls fail at every member. The error names the member,
// the collective, its instance and its round.
//
// The group reads an input until `done`, and peers may read it a little longer. Before the caller changes it
// afterwards, it has to check that nothing else holds it (Tensor::OwnsBufferAlone), as with every tensor. If the caller
// moves a tensor in and nothing else holds it, the group may work on it in place. Members of one process may get the
// same tensor as their result. Tensors are dense numbers in host memory; bool is allowed if nothing is computed. For
// other tensors `done` gets an InvalidArgumentError and the group goes on.
class Communicator : public Resource {
 public:
  using Done = std::function<void(const Status&, Tensor)>;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Reduces all members' tensors, which have one dtype and shape. The result is bitwise the same at every member.
  // bfloat16 is accumulated in float32 and rounded once. MEAN is the sum divided by size(), for integers towards zero.
  virtual void AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) = 0;
  // Gives every member the root's tensor. The others bring one of the same dtype and shape; its elements do not matter.
  virtual void BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) = 0;
  // Joins the members' tensors [n, ...] to [size * n, ...], in the order of ranks. A scalar counts as [1].
  virtual void AllGatherAsync(const CollectiveId& id, Tensor input, Done done) = 0;
  // Reduces the members' tensors [size * n, ...]. This member gets the rows [rank * n, (rank + 1) * n).
  virtual void ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) = 0;
  // Calls `done` when all members have called. `done` gets no tensor.
  virtual void BarrierAsync(const CollectiveId& id, Done done) = 0;

  // Fails the group. If it has failed before, the first reason stays.
  virtual void Abort(const Status& why) = 0;
  // Returns why the group has failed, ok if it has not.
  virtual Status status() const = 0;
};

}  // namespace cohort
