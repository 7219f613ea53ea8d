// Device: a place where kernels run - its name, its memory, its compute thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/buffer.h"
#include "cohort/core/error.h"
#include "cohort/core/thread_pool.h"
#include "cohort/device/device_attributes.h"
#include "cohort/device/resource.h"
#include "cohort/device/stream.h"
#include "cohort/device/update_gate.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

class Backend;

// What a task owns once and all its devices share.
struct TaskResources {
  ResourceManager resources;
  UpdateGate update_gate;
};

// Thread-safe. Belongs to a DeviceSet; kernels may keep a reference as long as their executable lives.
class Device {
 public:
  // `intra_op_threads` is how many threads a kernel may use on the compute thread. `backend` and `allocator` must
  // outlive the device. Throws InvalidArgumentError for a name that is not full and for fewer threads than one.
  Device(const Backend& backend, DeviceAttributes attributes, Allocator& allocator, std::shared_ptr<TaskResources> task,
         int intra_op_threads);
  virtual ~Device();

  const Backend& backend() const { return backend_; }
  const DeviceAttributes& attributes() const { return attributes_; }
  const std::string& name() const { return name_; }  // full text form
  const std::string& type() const { return attributes_.type; }
  Allocator& allocator() const { return allocator_; }
  TaskResources& task() const { return *task_; }
  ResourceManager& resources() const { return task_->resources; }
  int intra_op_threads() const { return intra_op_threads_; }
  // The one thread on which kernels may use several threads. Kernels elsewhere run on one core (see OneThreadScope).
  // Started by the first call.
  ThreadPool& compute_thread();

  // Copies between this device's memory and the host's, complete when they return. Here they share the bytes.
  virtual Tensor CopyToHost(const Tensor& value);
  virtual Tensor CopyFromHost(const Tensor& value);

  // The streams of a device whose kernels enqueue their work and return; null on any other device. All sessions share
  // them. Outputs of kernels are valid in the order of the compute stream, and memory of the device is reused in its
  // order. Copies have streams of their own.
  virtual Stream* compute_stream() { return nullptr; }
  virtual Stream* to_host_stream() { return nullptr; }
  virtual Stream* from_host_stream() { return nullptr; }
  // Copies `value` to host memory behind the work that is on the compute stream now, and calls `done` once: on the
  // thread of RunOnHost, or before CopyToHostAsync returns if the value lies in host memory.
  using CopyDone = std::function<void(const Status&, Tensor)>;
  virtual void CopyToHostAsync(const Tensor& value, CopyDone done);
  // Returns a copy of `value`, which lies in host memory, that is valid in the order of the compute stream.
  virtual Tensor CopyFromHostAsync(const Tensor& value);
  // Runs `work` on the compute thread. For what an event's callback must not do itself.
  void RunOnHost(std::function<void()> work) { compute_thread().Schedule(std::move(work)); }

 protected:
  // Returns what the compute thread runs first.
  virtual std::function<void()> ComputeThreadSetup() const;

 private:
  friend class OneThreadScope;
  // Limits parallel regions that the calling thread opens to one thread. Returns what RestoreThreads needs to undo it,
  // 0 if there is nothing to undo.
  virtual int LimitToOneThread() { return 0; }
  virtual void RestoreThreads(int /*limited*/) {}

  const Backend& backend_;
  DeviceAttributes attributes_;
  std::string name_;
  Allocator& allocator_;
  std::shared_ptr<TaskResources> task_;
  int intra_op_threads_;
  std::once_flag compute_thread_once_;
  std::unique_ptr<ThreadPool> compute_thread_;
};

// While it lives, kernels of `device` that run on this thread use this thread alone, whatever team the thread would get
// otherwise. For threads other than the compute thread.
class OneThreadScope {
 public:
  // Does nothing unless `active`.
  OneThreadScope(Device& device, bool active) : device_(device), limited_(active ? device.LimitToOneThread() : 0) {}
  ~OneThreadScope() {
    if (limited_ != 0) device_.RestoreThreads(limited_);
  }
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  Device& device_;
  const int limited_;
};

// The devices of one task, by full name.
class DeviceSet {
 public:
  explicit DeviceSet(std::vector<std::unique_ptr<Device>> devices) : devices_(std::move(devices)) {}
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // Null where there is none.
  Device* Find(const std::string& full_name) const;
  Device* Find(const DeviceName& name) const;

 private:
  std::vector<std::unique_ptr<Device>> devices_;
};

// Of device number `id` of a type on a task (replica 0 where the name has none), with a new incarnation.
DeviceAttributes AttributesOf(const DeviceName& task_name, const std::string& type, int id);
// A random incarnation, never 0.
uint64_t NewIncarnation();

}  // namespace cohort
