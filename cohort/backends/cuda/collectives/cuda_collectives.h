// CudaCollectives: collectives between devices of type "GPU" of one process. Tensors stay in the memory of the cards.
#pragma once

#include <vector>

#include "cohort/device/collectives/device_collectives.h"

namespace cohort::cuda {

// Members on one card share its memory, so one kernel reads the tensors of all of them. Between cards, parts of the
// tensors are copied. The order of sums is that of the ranks, wherever the members are. The backend owns the only
// object.
class CudaCollectives final : public DeviceCollectives {
 public:
  bool Serves(int members) const override;
  bool MayStillFail(const KernelContext& ctx) const override;
  void AllReduce(ReduceOp op, const std::vector<DevicePart>& parts) const override;
  void ReduceScatter(ReduceOp op, const std::vector<DevicePart>& parts) const override;
  void AllGather(const std::vector<DevicePart>& parts) const override;
  void Broadcast(int root, const std::vector<DevicePart>& parts) const override;
};

}  // namespace cohort::cuda
