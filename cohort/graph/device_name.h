// DeviceName: TensorFlow's device specification, such as /job:worker/replica:0/task:1/device:CPU:0, or a part of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// The type of the devices that use the host's memory. Each task has such a device. A node that requests no device type
// is placed there, unless a backend with devices on the task takes such nodes (Backend::takes_unplaced_nodes).
inline constexpr char kHostDeviceType[] = "CPU";

// Allows "/type:0" as a short form of "/device:TYPE:0". The host's type always has this short form. A second call for a
// type does nothing. Not thread-safe: the registration of backends calls it at the start, before any name is parsed.
COHORT_EXPORT void AddShortDeviceType(std::string_view type);

// The name of a device, or a pattern for names. A value type. Each part is optional. An absent part means "any".
struct COHORT_EXPORT DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // upper case
  std::optional<int> id;

  // Reads the full form and the short forms: "/cpu:0", "CPU:0", "job:worker/task:0/cpu:0/", "/device:GPU:*", "". Throws
  // InvalidArgumentError, with the text and the wrong part, for any other text.
  static DeviceName Parse(std::string_view text);
  // Returns, for example, "/job:worker/replica:0/task:1/device:CPU:0". Leaves out absent parts. Writes a type without
  // an id as "/device:GPU:*".
  std::string ToString() const;

  // Returns the parts of `inner`. Adds the parts of this name that `inner` lacks.
  DeviceName OverriddenBy(const DeviceName& inner) const;
  // Returns the parts of this name. Adds the parts of `base` that this name lacks.
  DeviceName CompletedFrom(const DeviceName& base) const { return base.OverriddenBy(*this); }
  // Returns whether `other` has every part that this name has, with the same value.
  bool Matches(const DeviceName& other) const;
  bool IsFull() const { return job && replica && task && type && id; }
  bool IsEmpty() const { return !job && !replica && !task && !type && !id; }
  // Returns the parts that name the task: "/job:worker/replica:0/task:1".
  DeviceName Task() const { return {job, replica, task, std::nullopt, std::nullopt}; }

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// Returns the text of `outer` overridden by `inner`. Throws as Parse does.
COHORT_EXPORT std::string MergeDevices(std::string_view outer, std::string_view inner);

}  // namespace cohort
