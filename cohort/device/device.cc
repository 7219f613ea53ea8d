#include "cohort/device/device.h"

#include <omp.h>

#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

Device::Device(DeviceAttributes attributes, Allocator& allocator, std::shared_ptr<TaskResources> task,
               int intra_op_threads)
    : attributes_(std::move(attributes)),
      name_(attributes_.name.ToString()),
      allocator_(allocator),
      task_(std::move(task)),
      intra_op_threads_(intra_op_threads) {
  if (!attributes_.name.IsFull()) {
    throw InvalidArgumentError(StrCat("[device] expected a full device name; got '", name_, "'"));
  }
  if (intra_op_threads < 1) {
    throw InvalidArgumentError(
        StrCat("[device] expected intra_op_threads of at least 1; got ", intra_op_threads, " for ", name_));
  }
}

Device::~Device() = default;

ThreadPool& Device::compute_thread() {
  std::call_once(compute_thread_once_, [this] {
    compute_thread_ = std::make_unique<ThreadPool>(StrCat(type(), ":", *attributes_.name.id, " compute"), 1);
    compute_thread_->Schedule([threads = intra_op_threads_] { omp_set_num_threads(threads); });
  });
  return *compute_thread_;
}

Tensor Device::CopyToHost(const Tensor& value) { return value; }

Tensor Device::CopyFromHost(const Tensor& value) { return value; }

void Device::CopyToHostAsync(const Tensor& value, CopyDone done) { done(Status(), CopyToHost(value)); }

Tensor Device::CopyFromHostAsync(const Tensor& value) { return CopyFromHost(value); }

Device* DeviceSet::Find(const std::string& full_name) const {
  for (const auto& device : devices_) {
    if (device->name() == full_name) return device.get();
  }
  return nullptr;
}

Device* DeviceSet::Find(const DeviceName& name) const {
  for (const auto& device : devices_) {
    if (name.Matches(device->attributes().name)) return device.get();
  }
  return nullptr;
}

DeviceAttributes AttributesOf(const DeviceName& task_name, const std::string& type, int id) {
  DeviceAttributes attributes;
  attributes.name = task_name.Task();
  if (!attributes.name.replica) attributes.name.replica = 0;
  attributes.name.type = type;
  attributes.name.id = id;
  attributes.type = type;
  attributes.incarnation = NewIncarnation();
  return attributes;
}

std::vector<std::unique_ptr<Device>> MakeCpuDevices(const DeviceName& task_name, int count, int intra_op_threads,
                                                    const std::shared_ptr<TaskResources>& task) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(
        std::make_unique<Device>(AttributesOf(task_name, "CPU", i), HostAllocator(), task, intra_op_threads));
  }
  return devices;
}

uint64_t NewIncarnation() {
  std::random_device entropy;
  uint64_t incarnation = 0;
  while (incarnation == 0) incarnation = (uint64_t{entropy()} << 32) | entropy();
  return incarnation;
}

}  // namespace cohort
