// CpuBackend: the backend of this machine's processors.
#pragma once

#include "cohort/device/backend.h"

namespace cohort {

// Makes devices of type "CPU", with their kernels, passes and chains. A kernel has done its work when its call returns.
// The memory is the host's. There is one object for the process. Thread-safe.
class CpuBackend final : public Backend {
 public:
  static const CpuBackend& Get();

  const std::string& type() const override { return type_; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;
  // Returns true if both kernels are elementwise and all their values have the same dtype; see elementwise_chain.h.
  bool CanChain(const ChainLink& producer, const ChainLink& consumer) const override;
  std::unique_ptr<OpKernel> MakeChain(std::vector<ChainLink> links) const override;

 private:
  CpuBackend() : type_(kHostDeviceType) {}
  const std::string type_;
};

}  // namespace cohort
