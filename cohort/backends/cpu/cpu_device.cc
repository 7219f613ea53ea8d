#include "cohort/backends/cpu/cpu_device.h"

#include <omp.h>

#include <utility>

#include "cohort/backends/cpu/cpu_backend.h"

namespace cohort {

CpuDevice::CpuDevice(DeviceAttributes attributes, std::shared_ptr<TaskResources> task, int intra_op_threads)
    : Device(CpuBackend::Get(), std::move(attributes), HostAllocator(), std::move(task), intra_op_threads) {}

std::function<void()> CpuDevice::ComputeThreadSetup() const {
  return [threads = intra_op_threads()] { omp_set_num_threads(threads); };
}

Device::ThreadLimit CpuDevice::LimitToOneThread() {
  const int threads = omp_get_max_threads();
  if (threads <= 1) return {};
  omp_set_num_threads(1);
  return {omp_set_num_threads, threads};
}

std::vector<std::unique_ptr<Device>> MakeCpuDevices(const DeviceName& task_name, int count, int intra_op_threads,
                                                    const std::shared_ptr<TaskResources>& task) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(std::make_unique<CpuDevice>(AttributesOf(task_name, kHostDeviceType, i), task, intra_op_threads));
  }
  return devices;
}

}  // namespace cohort
