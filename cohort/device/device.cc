#include "cohort/device/device.h"

#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

Device::Device(const Backend& backend, DeviceAttributes attributes, Allocator& allocator,
               std::shared_ptr<TaskResources> task, int intra_op_threads)
    : backend_(backend),
      attributes_(std::move(attributes)),
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
    compute_thread_->Schedule(ComputeThreadSetup());
  });
  return *compute_thread_;
}

std::function<void()> Device::ComputeThreadSetup() const {
  return [] {};
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

uint64_t NewIncarnation() {
  std::random_device entropy;
  uint64_t incarnation = 0;
  while (incarnation == 0) incarnation = (uint64_t{entropy()} << 32) | entropy();
  return incarnation;
}

}  // namespace cohort
