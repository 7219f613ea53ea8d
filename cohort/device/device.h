// Device: a device on which kernels run, with its memory, its streams and its compute thread. DeviceSet: the devices of
// one task.
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
#include "cohort/device/applied_updates.h"
#include "cohort/device/device_attributes.h"
#include "cohort/device/resource.h"
#include "cohort/device/stream.h"
#include "cohort/device/update_gate.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

class Backend;
class StepRecorder;

// The objects that all devices of a task share. Each task has one TaskResources.
struct TaskResources {
  ResourceManager resources;
  UpdateGate update_gate;
  AppliedUpdates applied_updates;
};

// The base of all devices. A DeviceSet owns it. The device must live longer than each executable that has kernels of
// it. Thread-safe. The destructor waits until the compute thread has run all work that was given to it.
class Device {
 public:
  // `intra_op_threads` is the number of threads that a kernel may use on the compute thread. `backend` and `allocator`
  // must live longer than the device. Throws InvalidArgumentError if attributes.name lacks a part, or if
  // `intra_op_threads` is less than 1.
  Device(const Backend& backend, DeviceAttributes attributes, Allocator& allocator, std::shared_ptr<TaskResources> task,
         int intra_op_threads);
  virtual ~Device();

  const Backend& backend() const { return backend_; }
  const DeviceAttributes& attributes() const { return attributes_; }
  const std::string& name() const { return name_; }  // the full name as text
  const std::string& type() const { return attributes_.type; }
  Allocator& allocator() const { return allocator_; }
  TaskResources& task() const { return *task_; }
  ResourceManager& resources() const { return task_->resources; }
  int intra_op_threads() const { return intra_op_threads_; }
  // Returns the one thread on which a kernel may use several threads (an OpenMP team). On other threads kernels use one
  // core (see OneThreadScope). The first call starts the thread.
  ThreadPool& compute_thread();

  // Called when a step begins. Throws FailedPreconditionError if no step can run on the device in this process, because
  // the process was forked from one that had used the device.
  virtual void CheckProcess() const {}

  // CopyToHost copies a tensor from this device's memory to the host's, and CopyFromHost the other way. Both functions
  // wait until the copy is complete. In the base class, which is for devices that use the host's memory, they return
  // the tensor itself.
  virtual Tensor CopyToHost(const Tensor& value);
  virtual Tensor CopyFromHost(const Tensor& value);

  // The streams of a device whose kernels enqueue their work and return; nullptr on any other device. All sessions
  // share the streams. An output of a kernel may be read by work that is enqueued later on the compute stream. A freed
  // buffer of device memory may be allocated again at once. The work of its next user must run after all work that was
  // on the compute stream when the buffer was freed. Copies to and from the host have streams of their own.
  virtual Stream* compute_stream() { return nullptr; }
  virtual Stream* to_host_stream() { return nullptr; }
  virtual Stream* from_host_stream() { return nullptr; }
  // Copies `value` to host memory after the work that is on the compute stream now. Then calls `done` once, on the
  // compute thread. If `value` lies in host memory, calls `done` before CopyToHostAsync returns.
  using CopyDone = std::function<void(const Status&, Tensor)>;
  virtual void CopyToHostAsync(const Tensor& value, CopyDone done);
  // Returns a copy of `value` in device memory. Work that is enqueued later on the compute stream may read it.
  // Requires: `value` lies in host memory.
  virtual Tensor CopyFromHostAsync(const Tensor& value);
  // Returns what records the steps of this device (recorded_step.h); nullptr if the device records none.
  virtual StepRecorder* step_recorder() { return nullptr; }
  // Runs `work` later on the compute thread. Does not wait. The callback of a StreamEvent uses it for work that the
  // callback must not do itself.
  void RunOnHost(std::function<void()> work) { compute_thread().Schedule(std::move(work)); }

 protected:
  // What undoes LimitToOneThread: the thread that called it calls restore(threads). The device is not needed for it.
  struct ThreadLimit {
    void (*restore)(int threads) = nullptr;  // null: nothing was changed
    int threads = 0;
  };
  // Returns a function that the compute thread runs before all other work.
  virtual std::function<void()> ComputeThreadSetup() const;

 private:
  friend class OneThreadScope;
  // Makes OpenMP parallel regions that the calling thread opens use one thread.
  virtual ThreadLimit LimitToOneThread() { return {}; }

  const Backend& backend_;
  DeviceAttributes attributes_;
  std::string name_;
  Allocator& allocator_;
  std::shared_ptr<TaskResources> task_;
  int intra_op_threads_;
  std::once_flag compute_thread_once_;
  std::unique_ptr<ThreadPool> compute_thread_;
};

// Makes kernels of `device` that run on the calling thread use no other thread, as long as the scope exists. A thread
// other than the compute thread opens it before it runs kernels. The thread that made the scope must also destroy it.
// The device may be destroyed before the scope, because the end of a step may free the device.
class OneThreadScope {
 public:
  // If `active` is false, the scope changes nothing.
  OneThreadScope(Device& device, bool active) : limit_(active ? device.LimitToOneThread() : Device::ThreadLimit()) {}
  ~OneThreadScope() {
    if (limit_.restore != nullptr) limit_.restore(limit_.threads);
  }
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  const Device::ThreadLimit limit_;
};

// The devices of one task. A DeviceSet owns its devices. The list never changes, and all threads may read it.
class DeviceSet {
 public:
  explicit DeviceSet(std::vector<std::unique_ptr<Device>> devices) : devices_(std::move(devices)) {}
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // Return the first device that has the name, or nullptr if there is none. An absent part of a DeviceName matches
  // everything.
  Device* Find(const std::string& full_name) const;
  Device* Find(const DeviceName& name) const;

 private:
  std::vector<std::unique_ptr<Device>> devices_;
};

// Returns the attributes of device number `id` of a type on a task, with a new incarnation. The replica is 0 if
// `task_name` has none.
DeviceAttributes AttributesOf(const DeviceName& task_name, const std::string& type, int id);
// Returns a random number that is not 0.
uint64_t NewIncarnation();

}  // namespace cohort
