// DeviceConfig: the settings that the functions of config:: (device/logical_devices.h) make, for the parts of Cohort
// that make devices.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/logical_devices.h"

namespace cohort::config {

// What a logical device gets of its physical device.
struct LogicalSetting {
  PhysicalDevice physical;
  int64_t memory_limit = 0;  // bytes; 0: its share of what is left
  bool memory_growth = true;
};

// Holds the settings that the functions of config:: make. These functions use Global(); tests make configs of their
// own. Thread-safe. The List and Set methods do what the functions of config:: with similar names do, and throw as they
// do.
class DeviceConfig {
 public:
  // Returns the settings of the process, which exist as long as the process.
  static DeviceConfig& Global();
  // Makes a config with one physical device, the CPU, which is visible.
  DeviceConfig();

  // Adds a physical device, which is visible. It is called for each physical device of a type other than CPU, in the
  // order of their numbers, before the first use of devices. Throws AlreadyExistsError if there is a device of this
  // name.
  void AddPhysical(const PhysicalDevice& device, const DeviceDetails& details = {});
  // Adds a function that returns physical devices of one type. It is called once, at the first use of any other
  // function of this object. So a program may still change its environment before that.
  using Source = std::function<std::vector<std::pair<PhysicalDevice, DeviceDetails>>()>;
  void AddSource(Source source);
  std::vector<PhysicalDevice> ListPhysical(const std::string& device_type) const;
  std::vector<LogicalDevice> ListLogical(const std::string& device_type);
  void SetVisible(const std::vector<PhysicalDevice>& devices, const std::string& device_type);
  void SetLogical(const PhysicalDevice& device, int count);
  void SetLogical(const PhysicalDevice& device, const std::vector<LogicalDeviceConfiguration>& logical_devices);
  DeviceDetails Details(const PhysicalDevice& device) const;
  void SetMemoryGrowth(const PhysicalDevice& device, bool enable);
  // Makes all later Set calls throw FailedPreconditionError. The messages name the `user` of the first call of Fix, for
  // example "the first session". ListLogical calls Fix too.
  void Fix(const std::string& user);
  // Returns the visible physical devices of a type. Here and in the functions below, `device_type` "" does not mean all
  // types.
  std::vector<PhysicalDevice> Visible(const std::string& device_type) const;
  // Returns whether the machine has devices of the type but none of them is visible.
  bool IsHidden(const std::string& device_type) const;
  // Returns the number of logical devices of all visible devices of a type.
  int Count(const std::string& device_type) const;
  // Returns the type of the devices on which replicas run if a program names none: the first type other than the host's
  // that has a visible device, or else the host's.
  std::string ReplicaType() const;
  // Returns one setting for each logical device of all visible devices of a type, in their order.
  std::vector<LogicalSetting> Logical(const std::string& device_type) const;
  // Returns whether SetLogical was called for a device of the type.
  bool IsSet(const std::string& device_type) const;

 private:
  struct Entry {
    PhysicalDevice device;
    bool visible = true;
    std::vector<LogicalDeviceConfiguration> logical =
        {};  // empty: SetLogical was not called; there is one logical device
    DeviceDetails details = {};
    bool memory_growth = true;
    size_t count() const { return logical.empty() ? 1 : logical.size(); }
  };
  // Calls the sources that have not been called.
  void Discover() const;
  // `what` is TensorFlow's word for what `call` sets.
  void CheckSettable(const char* what, const char* call) const COHORT_REQUIRES(mu_);
  Entry& Find(const PhysicalDevice& device, const char* call) const COHORT_REQUIRES(mu_);

  mutable Mutex source_mu_;  // held while sources are called
  mutable std::vector<Source> sources_ COHORT_GUARDED_BY(source_mu_);
  mutable std::atomic<bool> has_sources_{false};
  mutable Mutex mu_;
  mutable std::vector<Entry> entries_ COHORT_GUARDED_BY(mu_);
  std::string fixed_by_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::config
