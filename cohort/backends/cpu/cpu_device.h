// CpuDevice: a device of type "CPU".
#pragma once

#include <memory>
#include <vector>

#include "cohort/device/device.h"

namespace cohort {

// A logical device on this machine's processors. Its compute thread has an OpenMP team of intra_op_threads threads.
class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, int intra_op_threads);

 private:
  std::function<void()> ComputeThreadSetup() const override;
  ThreadLimit LimitToOneThread() override;
};

// Makes `count` logical devices /job:J/replica:0/task:T/device:CPU:0, CPU:1, ... which share `task`.
std::vector<std::unique_ptr<Device>> MakeCpuDevices(const DeviceName& task_name, int count, int intra_op_threads,
                                                    const std::shared_ptr<TaskResources>& task);

}  // namespace cohort
