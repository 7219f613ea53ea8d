// CudaBackend: the backend of devices of type "GPU".
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/collectives/cuda_collectives.h"
#include "cohort/backends/cuda/collectives/nccl_library.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/device/backend.h"
#include "cohort/device/device_config.h"

namespace cohort::cuda {

// The part of a card that a logical device uses.
struct DevicePart {
  int card = 0;
  size_t memory_limit = 0;  // bytes
  bool memory_growth = true;
};

// Plans `count` devices. Device i gets what logical[i] says; devices beyond that take the visible cards by turns, and
// all cards if `logical` is empty. Devices of a card without a limit of their own share equally what the others leave
// of the memory that is free when the process first uses the card.
std::vector<DevicePart> PlanDevices(Driver& driver, int count, const std::vector<config::LogicalSetting>& logical);

// Devices of CUDA cards. Get returns the only object of the process, which is never destroyed. Thread-safe.
class CudaBackend final : public Backend {
 public:
  static CudaBackend& Get();

  const std::string& type() const override { return type_; }
  bool has_streams() const override { return true; }
  // True, as in TensorFlow. A test may set it to false.
  bool takes_unplaced_nodes() const override { return takes_unplaced_nodes_; }
  void set_takes_unplaced_nodes(bool takes) { takes_unplaced_nodes_ = takes; }
  const DeviceCollectives* collectives() const override { return &collectives_; }
  CollectiveLibrary* collective_library() const override { return &library_; }
  // Makes the devices that PlanDevices plans. Makes none if there is no driver.
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;

 private:
  const std::string type_ = "GPU";
  const CudaCollectives collectives_{};
  mutable NcclLibrary library_;
  std::atomic<bool> takes_unplaced_nodes_{true};
};

// Returns the physical devices of the driver, for the config. If there is no driver that can be used, returns none, and
// one line of the log says why.
std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> ListCards();

}  // namespace cohort::cuda
