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
  size_t memory_limit = 0;  // bytes; 0: a share of what the devices with limits leave
  bool memory_growth = true;
  size_t promised = 0;  // the sum of the limits of all devices of the card, in bytes
  size_t sharing = 0;   // how many devices of the card have no limit of their own
};

// Plans `count` devices. Device i gets what logical[i] says; devices beyond that take the visible cards by turns, and
// `cards` if `logical` is empty. Uses no card.
std::vector<DevicePart> PlanDevices(const std::vector<int>& cards, int count,
                                    const std::vector<config::LogicalSetting>& logical);
// Returns how many bytes the device may use: its limit, or an equal share of what the limits of others leave of the
// memory that is free when the process first uses the card. Uses the card, and throws the driver's error if that is not
// possible.
size_t MemoryLimitOf(Driver& driver, const DevicePart& part);

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
  // Makes the devices that PlanDevices plans. Makes none if there is no driver, or no card that the program can use.
  // The cards themselves are used when something first runs on a device, so that tasks without such work leave them
  // alone.
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;
  bool CanChain(const ChainLink& producer, const ChainLink& consumer) const override;
  std::unique_ptr<OpKernel> MakeChain(std::vector<ChainLink> links) const override;

 private:
  const std::string type_ = "GPU";
  const CudaCollectives collectives_{};
  mutable NcclLibrary library_;
  std::atomic<bool> takes_unplaced_nodes_{true};
};

// Returns the physical devices of the driver, for the config, without cards that the program cannot use. The log says
// which these are and why. If there is no driver that can be used, returns none, and one line of the log says why.
std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> ListCards();

// Registers the backend and its kernels if there are signs of a driver, and lets the config list the physical devices
// (ListCards), which asks the driver at the first use of the config. If there is no GPU then, a line of the log says
// why.
void RegisterIfThereIsADriver();

}  // namespace cohort::cuda
