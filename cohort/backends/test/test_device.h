// The device of type "TEST": memory that the host cannot read and a stream that is a delayed thread, so that
// whatever runs on it is fit for an accelerator. It computes with the CPU's kernels. For tests.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/device/backend.h"

namespace cohort {

// Memory whose addresses fault when they are followed. Lives as long as the process.
Allocator& TestDeviceAllocator();
// `value` as the host's kernels may see it: the same bytes at their true address. Tensors in host memory come
// back as they are.
Tensor HostViewOfTestDevice(const Tensor& value);
// The reverse: the same bytes at an address that the host cannot follow. Tensors of objects (strings,
// handles) come back as they are, they lie in host memory on every device.
Tensor TestDeviceViewOfHost(const Tensor& value);

class TestDevice final : public Device {
 public:
  // Each kernel starts `delay` after its turn on the stream has come.
  TestDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, std::chrono::microseconds delay);
  // Runs what is still on the stream.
  ~TestDevice() override;

  // Copies of the bytes.
  Tensor CopyToHost(const Tensor& value) override;
  Tensor CopyFromHost(const Tensor& value) override;

  // Runs `work` after all that was enqueued before and the delay. Thread-safe; `work` must not throw.
  void Enqueue(std::function<void()> work);
  // What the CPU's kernels that compute for this device take for theirs: the same task, host memory.
  Device& host() { return host_; }

 private:
  const std::chrono::microseconds delay_;
  CpuDevice host_;
  ThreadPool stream_;
};

// `count` devices /job:J/replica:0/task:T/device:TEST:0.. that share `task`.
std::vector<std::unique_ptr<Device>> MakeTestDevices(const DeviceName& task_name, int count,
                                                     const std::shared_ptr<TaskResources>& task,
                                                     std::chrono::microseconds delay = std::chrono::microseconds(50));

// Gives every op that has a CPU kernel so far one for TEST, except those that have one already: call it after all
// kernels are registered. It runs the CPU's on the stream, on views of the device's memory, and is asynchronous; it
// throws InternalError for an input that does not lie where its op wants it.
void RegisterTestDeviceKernels(KernelRegistry& registry);

// The backend of these devices. It uses the CPU's passes.
class TestBackend final : public Backend {
 public:
  static TestBackend& Get();

  const std::string& type() const override { return type_; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override;
  void RegisterKernels(KernelRegistry& registry) const override;
  std::unique_ptr<Graph> Improve(std::unique_ptr<Graph> partition) const override;
  // Of the devices that are made from now on.
  void set_delay(std::chrono::microseconds delay) { delay_ = delay; }

 private:
  const std::string type_ = "TEST";
  std::chrono::microseconds delay_{50};
};

// Registers the backend: from then on device_count {"TEST", n} makes such devices. Only the first call does anything.
// Call it after all other kernels are registered.
void RegisterTestDevice(std::chrono::microseconds delay = std::chrono::microseconds(50));

}  // namespace cohort
