// The backend of the processors of this machine.
#pragma once

#include "cohort/device/backend.h"

namespace cohort {

// Devices of type "CPU". Kernels run to their end when they are called; the memory is the host's.
class CpuBackend final : public Backend {
 public:
  static const CpuBackend& Get();

  const std::string& type() const override { return type_; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;
  // Chains are made of elementwise kernels of one dtype; see elementwise_chain.h.
  bool CanChain(const ChainLink& producer, const ChainLink& consumer) const override;
  std::unique_ptr<OpKernel> MakeChain(std::vector<ChainLink> links) const override;

 private:
  CpuBackend() : type_(kHostDeviceType) {}
  const std::string type_;
};

}  // namespace cohort
