// Communicator: one member's end of a group of devices that compute together - the collectives that kernels and
// strategies call. The group itself is of collective/.
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

// What a group knows of its caller's graph; made and read by who implements groups.
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;
};

// Which collective of a group's schedule a call is. Members give the same numbers to the same collectives; each call
// of one is its next round, so calls of one number are made one after another, in the same order by every member. Calls
// of different numbers may overlap and be made in any order.
struct CollectiveId {
  int64_t instance = 0;
  std::string name;  // for errors: "gradients/dense/kernel"
  // All that a step of the caller's graph runs with the group: members that run this collective together and run
  // different ones besides are told of the first difference (collective/schedule.h). Null: not known.
  std::shared_ptr<const CollectiveSchedule> schedule = nullptr;
};

// Thread-safe. Nothing waits: `done` is called exactly once, on any thread, perhaps before the call returns; it must be
// quick and must not throw. Whatever fails - a member lost, another shape, a deadline - fails the whole group: all
// calls that are under way and all later ones, at every member, with an error that names the member, the collective,
// its instance and its round.
//
// A tensor that is given is read until `done`, and by peers a little longer: who changes it afterwards makes sure that
// nobody else holds it (Tensor::OwnsBufferAlone), as with every tensor. A tensor that is moved in and that nobody else
// holds may be worked on in place. Members of one process may get one and the same tensor. Tensors are dense numbers
// (bool only where nothing is computed) in host memory; InvalidArgumentError comes through `done` for others.
class Communicator : public Resource {
 public:
  using Done = std::function<void(const Status&, Tensor)>;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The reduction of all members' tensors, of one dtype and shape; bitwise the same at every member. bfloat16 is
  // accumulated in float32 and rounded once. MEAN is the sum divided by size(), for integers towards zero.
  virtual void AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) = 0;
  // Root's tensor. The others bring one of the same dtype and shape, whose elements do not count.
  virtual void BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) = 0;
  // [n, ...] from each: [size * n, ...], in the order of ranks. A scalar counts as [1].
  virtual void AllGatherAsync(const CollectiveId& id, Tensor input, Done done) = 0;
  // [size * n, ...] from each: rows [rank * n, (rank + 1) * n) of the reduction.
  virtual void ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) = 0;
  // Nobody is done before all have called. `done` gets no tensor.
  virtual void BarrierAsync(const CollectiveId& id, Done done) = 0;

  // Fails the group. The first reason counts.
  virtual void Abort(const Status& why) = 0;
  // Why the group has failed; ok while it has not.
  virtual Status status() const = 0;
};

// Where a task's ResourceManager has the communicators of its devices (a container of its own, so that clearing
// variables leaves them).
inline constexpr const char* kCommunicatorContainer = "_communicators";
std::string CommunicatorName(int64_t group_key, const std::string& device);

}  // namespace cohort
