// Backend: everything that is particular to one device type. BackendRegistry: the backends of this program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/device/kernel.h"
#include "cohort/device/logical_devices.h"
#include "cohort/graph/graph.h"

namespace cohort {

struct DeviceRequest {
  DeviceName task;
  int count = 0;             // devices of the type
  int intra_op_threads = 1;  // of each
  std::shared_ptr<TaskResources> resources;
  // The physical devices that the logical ones share, in order. Empty if the type has not announced any
  // (config::DeviceConfig::AddPhysical).
  std::vector<config::PhysicalDevice> physical = {};
};

// One node that may become a part of a chain, with what a backend needs to run it as one. `node` must outlive it.
struct ChainLink {
  const Node* node = nullptr;
  std::unique_ptr<OpKernel> kernel;
  // By input: its value if that is the same in every step, else an undefined tensor.
  std::vector<Tensor> constants;
  // Which input is the value of the link before; -1 for the first link.
  int value_input = -1;
};

// Describes one device type: its name, its devices, its kernels and its graph passes. There is one object a type. It is
// registered once and lives as long as the process. Thread-safe: plans are compiled on any thread. No step calls it.
class Backend {
 public:
  virtual ~Backend() = default;

  // The type of the devices, in upper case.
  virtual const std::string& type() const = 0;
  // Whether kernels enqueue their work on a stream of the device and return before it is done.
  virtual bool has_streams() const { return false; }
  // Whether nodes that ask for no type of device are placed on devices of this type if it has kernels for them. Such
  // devices go before the host's, as GPUs do in TensorFlow.
  virtual bool takes_unplaced_nodes() const { return false; }
  virtual std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const = 0;
  // Registers the kernels of the type under type().
  virtual void RegisterKernels(KernelRegistry& registry) const = 0;
  // Runs the graph passes of the type over one partition, in order. Returns the improved partition.
  virtual std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const { return partition; }

  // Whether `producer` and then `consumer` may run as neighbours in a chain: one kernel for several nodes. The caller
  // has made sure that both have one output and a kernel that does not wait, and that nothing but the input
  // `consumer.value_input` uses the value of `producer` or waits for it.
  virtual bool CanChain(const ChainLink& /*producer*/, const ChainLink& /*consumer*/) const { return false; }
  // Makes one kernel of links, each of which may follow the one before. Its inputs are those of all links in their
  // order, without the values between two links and without constants. Its output is that of the last link. It accepts
  // whatever shapes the links would accept one by one. Requires: CanChain holds for each two neighbours.
  virtual std::unique_ptr<OpKernel> MakeChain(std::vector<ChainLink> links) const;
};

// The backends of this program, by type. Filled once at start by the explicit registration list, read-only afterwards.
class BackendRegistry {
 public:
  static BackendRegistry& Global();
  // `config` says how many devices of each type a task has by default. It must outlive the registry.
  explicit BackendRegistry(config::DeviceConfig& config = config::DeviceConfig::Global()) : config_(config) {}
  // Throws AlreadyExistsError if the type has a backend. `backend` must outlive the registry. Device names may then
  // write "/type:0".
  void Register(const Backend& backend);
  // Returns null if there is none.
  const Backend* Find(std::string_view type) const;
  std::vector<std::string> types() const;

  // Makes all devices of `task`: as many of each type as `device_count` says, else as config:: has it (one of the
  // host's type). A type without a backend counts for nothing, as in TensorFlow, and so does a
  // type that config:: hides. `intra_op_threads` 0 means the number
  // of cores, divided by the devices of the host's type. Throws InvalidArgumentError, prefixed with `component`, if no
  // device of the host's type is wanted, and FailedPreconditionError if that type has no backend.
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceName& task,
                                                   const std::map<std::string, int>& device_count, int intra_op_threads,
                                                   const std::shared_ptr<TaskResources>& resources,
                                                   const char* component) const;

 private:
  config::DeviceConfig& config_;
  std::map<std::string, const Backend*, std::less<>> backends_;
};

}  // namespace cohort
