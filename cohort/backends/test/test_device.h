// TestDevice and TestBackend: devices of type "TEST". They need no hardware but keep the contract of a device with
// streams. So code that works on these devices is ready for an accelerator. They compute with the CPU's kernels.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/backends/test/test_memory.h"
#include "cohort/backends/test/test_stream.h"
#include "cohort/core/mutex.h"
#include "cohort/device/backend.h"

namespace cohort {

// A device with one stream for kernels and two for copies. Each stream is a thread. Each device has memory and a memory
// space of its own. The session or server for which it was made owns it. Thread-safe.
class TestDevice final : public Device {
 public:
  TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, const TestDelays& delays);
  // Runs the work that is still on the streams, then ends them.
  ~TestDevice() override;

  TestStream* compute_stream() override { return &parts_->compute; }
  TestStream* to_host_stream() override { return &to_host_; }
  TestStream* from_host_stream() override { return &from_host_; }
  // Copy the bytes. A tensor of objects (strings, handles) is returned unchanged, because it is in host memory on every
  // device. CopyToHost and CopyFromHost wait for the copy; the other two enqueue it. Throw InternalError for a tensor
  // of another device. The two that wait throw DeadlineExceededError after ten minutes.
  Tensor CopyToHost(const Tensor& value) override;
  Tensor CopyFromHost(const Tensor& value) override;
  void CopyToHostAsync(const Tensor& value, CopyDone done) override;
  Tensor CopyFromHostAsync(const Tensor& value) override;

  // Waits until all work that is now on the compute stream has run. Throws DeadlineExceededError after ten minutes.
  void Synchronize();
  // Returns the device that the CPU's kernels see when they compute for this device: the same task, with host memory.
  Device& host() { return host_; }
  const TestMemory& memory() const { return *parts_->memory; }

 private:
  // Members that must exist before the base class is constructed.
  struct Parts {
    Parts(const std::string& name, const TestDelays& delays);
    TestStream compute;
    std::shared_ptr<TestMemory> memory;
  };
  TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, const TestDelays& delays,
             std::unique_ptr<Parts> parts);
  void CheckMine(const Tensor& value) const;

  std::unique_ptr<Parts> parts_;
  TestStream to_host_;
  TestStream from_host_;
  CpuDevice host_;
};

// The backend of TEST devices. It uses the CPU's passes. Get returns the only object of the process, which is never
// destroyed. Thread-safe.
class TestBackend final : public Backend {
 public:
  static TestBackend& Get();

  const std::string& type() const override { return type_; }
  bool has_streams() const override { return true; }
  // False by default. If a test sets it to true, nodes that request no type of device are placed on TEST devices.
  bool takes_unplaced_nodes() const override { return takes_unplaced_nodes_; }
  void set_takes_unplaced_nodes(bool takes) { takes_unplaced_nodes_ = takes; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  // Registers a TEST kernel for each op that has a kernel for the type CPU and none for TEST. Host kernels serve TEST
  // already.
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;
  // Sets the delays of devices that are made from now on. Each stream draws its delays from its own seed.
  void set_delays(const TestDelays& delays);

 private:
  const std::string type_ = "TEST";
  std::atomic<bool> takes_unplaced_nodes_{false};
  mutable Mutex mu_;
  mutable TestDelays delays_ COHORT_GUARDED_BY(mu_);  // has the seed of the next device
};

// Registers the backend. From then on device_count {"TEST", n} makes such devices. Further calls do not register it
// again. Each call gives a TEST kernel to the ops that have got a CPU kernel since the call before.
void RegisterTestBackend();

}  // namespace cohort
