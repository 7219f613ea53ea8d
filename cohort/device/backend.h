// Backend: describes one device type. BackendRegistry: the backends of this program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/device/collectives/collective_library.h"
#include "cohort/device/collectives/device_collectives.h"
#include "cohort/device/device.h"
#include "cohort/device/device_config.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/graph.h"

namespace cohort {

// The argument of Backend::MakeDevices.
struct DeviceRequest {
  DeviceName task;
  int count = 0;             // how many devices of the type to make
  int intra_op_threads = 1;  // threads that a kernel of each device may use
  std::shared_ptr<TaskResources> resources;
  // The visible physical devices of the type, in order. The new logical devices share them. Empty if the config
  // (config::DeviceConfig) lists no physical device of the type.
  std::vector<config::PhysicalDevice> physical = {};
  // What the config says for each logical device of the type, in order. `count` may differ, because a session's
  // device_count goes before the config.
  std::vector<config::LogicalSetting> logical = {};
};

// A node that may become a part of a chain, and what a backend needs to put the node into one kernel with its
// neighbours. The code that compiles a plan owns the links until it gives them to MakeChain. `node` must live longer
// than the link.
struct ChainLink {
  const Node* node = nullptr;
  std::unique_ptr<OpKernel> kernel;
  // One tensor for each input: the value of the input if it is the same in every step, else an undefined tensor.
  std::vector<Tensor> constants;
  // Which input is the value of the link before this one; -1 for the first link.
  int value_input = -1;
};

// Describes one device type: its name, its devices, its kernels and its graph passes. There is one object for each
// type. It is registered once and lives as long as the process. Thread-safe, because plans are compiled on any thread.
// Steps do not use it; it is used when devices are made, kernels are registered, nodes are placed and plans are
// compiled.
class Backend {
 public:
  virtual ~Backend() = default;

  // Returns the device type in upper case.
  virtual const std::string& type() const = 0;
  // Returns whether kernels enqueue their work on a stream of the device and return before the work is done.
  virtual bool has_streams() const { return false; }
  // Returns whether nodes that request no type of device are placed on devices of this type if the type has kernels for
  // them. Such devices go before the host's, as GPUs do in TensorFlow.
  virtual bool takes_unplaced_nodes() const { return false; }
  // Returns the collectives between devices of the type in one process, or null if they run in host memory.
  virtual const DeviceCollectives* collectives() const { return nullptr; }
  // Returns the library for collectives between devices of the type in several processes, or null if they run in host
  // memory.
  virtual CollectiveLibrary* collective_library() const { return nullptr; }
  // Returns `request.count` new devices.
  virtual std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const = 0;
  // Registers the kernels of the type under type().
  virtual void RegisterKernels(KernelRegistry& registry) const = 0;
  // Runs the graph passes of this device type over one partition, in order. Returns the improved partition.
  virtual std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const { return partition; }

  // Returns whether `producer` and then `consumer` may be neighbours in a chain: one kernel for several nodes.
  // Requires: both have one output and a kernel that does not wait, `consumer.value_input` is the only use of
  // `producer` (no other input and no control edge), and `consumer` has no control inputs.
  virtual bool CanChain(const ChainLink& /*producer*/, const ChainLink& /*consumer*/) const { return false; }
  // Takes over the links. Returns one kernel that does the work of all of them. Its inputs are the inputs of all links
  // in their order, without the values between two links and without constants. Its output is the output of the last
  // link. It accepts all shapes that the single links accept. Requires: CanChain is true for each two neighbours.
  virtual std::unique_ptr<OpKernel> MakeChain(std::vector<ChainLink> links) const;
};

// The backends of this program, by type. cohort/registration.h fills it once at the start. After that it never changes,
// and all threads may read it.
class BackendRegistry {
 public:
  static BackendRegistry& Global();
  // `config` says how many devices of each type a task has by default. It must live longer than the registry.
  explicit BackendRegistry(config::DeviceConfig& config = config::DeviceConfig::Global()) : config_(config) {}
  // Adds a backend. Throws AlreadyExistsError if its type has a backend already. `backend` must live longer than the
  // registry. From now on device names may have the short form "/type:0".
  void Register(const Backend& backend);
  // Returns the backend of the type, or nullptr if there is none.
  const Backend* Find(std::string_view type) const;
  std::vector<std::string> types() const;

  // Returns new devices of all types for the task `task`. The number of devices of a type is the one in `device_count`,
  // or else the one in the config. (The config begins with 1 device of the host's type.) Makes no devices of a type
  // that the config hides or, as in TensorFlow, that has no backend, even if `device_count` asks for some. From this
  // call on, the Set functions of the config throw. If `intra_op_threads` is 0, each device gets the number of cores
  // divided by the number of devices of the host's type. Throws InvalidArgumentError if there would be no device of the
  // host's type, and FailedPreconditionError if that type has no backend. `component` names the caller in messages,
  // such as "session".
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceName& task,
                                                   const std::map<std::string, int>& device_count, int intra_op_threads,
                                                   const std::shared_ptr<TaskResources>& resources,
                                                   const char* component) const;

 private:
  config::DeviceConfig& config_;
  std::map<std::string, const Backend*, std::less<>> backends_;
};

}  // namespace cohort
