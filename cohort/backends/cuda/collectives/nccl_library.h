// NcclLibrary: NCCL for devices of type "GPU", as collective/ uses it.
#pragma once

#include <memory>
#include <string>

#include "cohort/device/collectives/collective_library.h"

namespace cohort::cuda {

// Has the collectives whose results NCCL computes as Communicator promises them. Sums of bfloat16 go through float32,
// which needs twice the bytes; a mean is a sum that is divided once; a reduce-scatter is an all-reduce of which the
// member keeps its rows. Minima and maxima of floating-point numbers are missing, because NCCL may lose a NaN. The
// backend owns the only object.
class NcclLibrary final : public CollectiveLibrary {
 public:
  void Open() override;
  std::string Describe() override;
  // Returns the card's PCI bus address.
  std::string PhysicalName(const Device& device) override;
  bool Has(LibraryCollective kind, ReduceOp op, DType dtype) override;
  std::string NewId() override;
  std::unique_ptr<LibraryCommunicator> Connect(Device& device, const std::string& id, int rank, int size,
                                               std::function<void()> wake) override;
};

}  // namespace cohort::cuda
