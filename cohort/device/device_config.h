// DeviceConfig: what config:: (device/logical_devices.h) has set, for the parts of Cohort that make devices.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/logical_devices.h"

namespace cohort::config {

// What is behind the functions of config::, which use Global(). Tests make their own. Thread-safe.
class DeviceConfig {
 public:
  // The process's.
  static DeviceConfig& Global();
  // Knows the CPU.
  DeviceConfig();

  // A backend announces each of its physical devices, in order. Throws AlreadyExistsError for a known name.
  void AddPhysical(const PhysicalDevice& device);
  std::vector<PhysicalDevice> ListPhysical(const std::string& device_type) const;
  std::vector<LogicalDevice> ListLogical(const std::string& device_type);
  void SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type);
  void SetLogical(const PhysicalDevice& device, int count);
  void SetMemoryGrowth(const PhysicalDevice& device, bool enable);
  // From now on nothing can be set; the first `user` ("the first session") is named.
  void Fix(const std::string& user);
  // Returns the physical devices of a type that the process uses.
  std::vector<PhysicalDevice> Visible(const std::string& device_type) const;
  // Returns whether the machine has devices of the type and SetVisible has left none of them.
  bool IsHidden(const std::string& device_type) const;
  // Returns how many logical devices the visible devices of a type have together.
  int Count(const std::string& device_type) const;
  // Returns whether SetLogical was called for the type.
  bool IsSet(const std::string& device_type) const;

 private:
  struct Entry {
    PhysicalDevice device;
    bool visible = true;
    int logical = 0;  // 0: SetLogical was not called, and there is one
  };
  void CheckSettable(const char* call) const COHORT_REQUIRES(mu_);
  Entry& Find(const PhysicalDevice& device, const char* call) COHORT_REQUIRES(mu_);

  mutable Mutex mu_;
  std::vector<Entry> entries_ COHORT_GUARDED_BY(mu_);
  std::string fixed_by_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::config
