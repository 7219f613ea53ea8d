// TestDevice and TestBackend: devices of type "TEST". They keep the contract of a device with streams without any
// hardware, so what runs on them is fit for an accelerator. They compute with the CPU's kernels.
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

// A device with one stream for kernels and two for copies, each of them a thread, and with a memory of its own. Each
// device of the process has a memory space of its own.
class TestDevice final : public Device {
 public:
  TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, const TestDelays& delays);
  // Runs what is still on the streams.
  ~TestDevice() override;

  TestStream* compute_stream() override { return &parts_->compute; }
  TestStream* to_host_stream() override { return &to_host_; }
  TestStream* from_host_stream() override { return &from_host_; }
  // Copies of the bytes. Tensors of objects (strings, handles) come back as they are: they lie in host memory on every
  // device. Throw InternalError for a tensor of another device, DeadlineExceededError if the streams stand still.
  Tensor CopyToHost(const Tensor& value) override;
  Tensor CopyFromHost(const Tensor& value) override;
  void CopyToHostAsync(const Tensor& value, CopyDone done) override;
  Tensor CopyFromHostAsync(const Tensor& value) override;

  // Waits until all that is on the compute stream now has run. Throws DeadlineExceededError after ten minutes.
  void Synchronize();
  // What the CPU's kernels that compute for this device take for theirs: the same task, host memory.
  Device& host() { return host_; }
  const TestMemory& memory() const { return *parts_->memory; }

 private:
  // What the base class needs first.
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

// The backend of these devices. It uses the CPU's passes.
class TestBackend final : public Backend {
 public:
  static TestBackend& Get();

  const std::string& type() const override { return type_; }
  bool has_streams() const override { return true; }
  // False, unless a test sets it: then what runs without a device scope runs on TEST.
  bool takes_unplaced_nodes() const override { return takes_unplaced_nodes_; }
  void set_takes_unplaced_nodes(bool takes) { takes_unplaced_nodes_ = takes; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  // Gives every op that has a kernel of the CPU's own so far one for TEST, except those that have one already.
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;
  // Of the devices that are made from now on. Each stream draws its delays from another seed.
  void set_delays(const TestDelays& delays);

 private:
  const std::string type_ = "TEST";
  std::atomic<bool> takes_unplaced_nodes_{false};
  mutable Mutex mu_;
  mutable TestDelays delays_ COHORT_GUARDED_BY(mu_);  // the seed of the next device
};

// Registers the backend: from then on device_count {"TEST", n} makes such devices. Only the first call registers it;
// each call gives TEST kernels to ops that got one of the CPU's since.
void RegisterTestBackend();

}  // namespace cohort
