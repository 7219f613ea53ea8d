// DeviceCollectives: collectives between devices of one type in one process, in the memory of these devices. A backend
// whose devices have memory of their own may offer them. Otherwise the collectives of its devices run in host memory.
#pragma once

#include <memory>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/device/communicator.h"
#include "cohort/device/device.h"
#include "cohort/device/kernel.h"
#include "cohort/device/stream.h"

namespace cohort {

// What one member brings to a collective. The tensors lie in the memory of `device`.
struct DevicePart {
  Device* device = nullptr;
  Tensor input;
  Tensor output;  // may share the buffer of `input`, except in ReduceScatter and AllGather
  // An event of the device's compute stream. When it is reached, the input is complete and the output may be written.
  std::shared_ptr<StreamEvent> ready;
};

// The collectives of one device type. The backend owns the object, which lives as long as the process. Thread-safe. The
// four collectives enqueue their work and return. Work that is enqueued later on the compute stream of a part's device
// may read its output, and may use the memory of its input for something else. `parts` are in the order of ranks. They
// have inputs of one dtype and one shape, and outputs of the shapes that Communicator's functions promise. Results are
// those of Communicator, and the same bits each time. All functions throw the errors of the devices.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  // Returns whether groups with this many members are served.
  virtual bool Serves(int members) const = 0;
  // Returns whether a kernel that was enqueued earlier in the step of `ctx` may still report bad data, or has done so.
  // Then the members must not give the results to others before the device's compute stream has run it.
  virtual bool MayStillFail(const KernelContext& ctx) const = 0;

  virtual void AllReduce(ReduceOp op, const std::vector<DevicePart>& parts) const = 0;
  virtual void ReduceScatter(ReduceOp op, const std::vector<DevicePart>& parts) const = 0;
  virtual void AllGather(const std::vector<DevicePart>& parts) const = 0;
  // Copies the input of `root` to the outputs of the other parts. The output of `root` is not used.
  virtual void Broadcast(int root, const std::vector<DevicePart>& parts) const = 0;
};

}  // namespace cohort
