// Members whose tensors lie in the memory of devices, for the suites that bring and check tensors in host memory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/device/backend.h"
#include "cohort/device/communicator.h"

namespace cohort::collective::testing {

// Devices of one type that belong to no session. The test owns them.
class LooseDevices {
 public:
  LooseDevices(const std::string& type, int count) {
    DeviceName task;
    task.job = "worker";
    task.replica = 0;
    task.task = 0;
    made_ = BackendRegistry::Global().MakeDevices(task, {{type, count}}, 1, std::make_shared<TaskResources>(), "test");
    for (const auto& device : made_) {
      if (device->type() == type) devices_.push_back(device.get());
    }
  }
  const std::vector<Device*>& devices() const { return devices_; }

 private:
  std::vector<std::unique_ptr<Device>> made_;
  std::vector<Device*> devices_;
};

// Copies each input to the memory of `device`, if the member takes it there, and each result to host memory.
class DeviceMember final : public Communicator {
 public:
  DeviceMember(std::shared_ptr<Communicator> member, Device& device) : member_(std::move(member)), device_(device) {}

  std::string Describe() const override { return member_->Describe(); }
  int rank() const override { return member_->rank(); }
  int size() const override { return member_->size(); }
  bool TakesDeviceMemory(const Device& device) const override { return member_->TakesDeviceMemory(device); }
  void AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) override {
    member_->AllReduceAsync(At(id), Moved(std::move(input)), op, Back(std::move(done)));
  }
  void BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) override {
    member_->BroadcastAsync(At(id), Moved(std::move(value)), root, Back(std::move(done)));
  }
  void AllGatherAsync(const CollectiveId& id, Tensor input, Done done) override {
    member_->AllGatherAsync(At(id), Moved(std::move(input)), Back(std::move(done)));
  }
  void ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) override {
    member_->ReduceScatterAsync(At(id), Moved(std::move(input)), op, Back(std::move(done)));
  }
  void BarrierAsync(const CollectiveId& id, Done done) override { member_->BarrierAsync(At(id), std::move(done)); }
  void Abort(const Status& why) override { member_->Abort(why); }
  Status status() const override { return member_->status(); }

 private:
  CollectiveId At(CollectiveId id) const {
    id.device = &device_;
    return id;
  }
  Tensor Moved(Tensor input) {
    const bool moves = input.defined() && DTypeSize(input.dtype()) > 0 && member_->TakesDeviceMemory(device_);
    return moves ? device_.CopyFromHostAsync(input) : std::move(input);
  }
  Done Back(Done done) {
    return [this, done = std::move(done)](const Status& status, Tensor value) {
      Tensor copy;
      Status copied = status;
      try {
        if (status.ok() && value.defined()) copy = device_.CopyToHost(value);
      } catch (...) {
        copied = Status::FromCurrentException();
      }
      value.Reset();
      done(copied, std::move(copy));
    };
  }

  const std::shared_ptr<Communicator> member_;
  Device& device_;
};

}  // namespace cohort::collective::testing
