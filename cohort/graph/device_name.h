// DeviceName: TensorFlow's device specifications, /job:worker/replica:0/task:1/device:CPU:0, whole or in part.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// The type of the devices whose memory is the host's. Every task has one, and a node that names no type stands there.
inline constexpr char kHostDeviceType[] = "CPU";

// Lets "/type:0" stand for "/device:TYPE:0" in device names. The host's type can always be written so. Called at start,
// before names are parsed; a second call for a type does nothing.
COHORT_EXPORT void AddShortDeviceType(std::string_view type);

// Every part is optional; an absent one means "any".
struct COHORT_EXPORT DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // upper case
  std::optional<int> id;

  // Accepts the full grammar and the short forms: "/cpu:0", "CPU:0", "job:worker/task:0/cpu:0/", "/device:GPU:*", "".
  // Throws InvalidArgumentError that quotes the text and the part that does not fit.
  static DeviceName Parse(std::string_view text);
  // "/job:worker/replica:0/task:1/device:CPU:0"; absent parts are left out; a type without id prints "/device:GPU:*".
  std::string ToString() const;

  // Fields of `inner` win, those it lacks come from this.
  DeviceName OverriddenBy(const DeviceName& inner) const;
  // Only what is missing here is taken from `base`.
  DeviceName CompletedFrom(const DeviceName& base) const { return base.OverriddenBy(*this); }
  // Whether `other` has every part set here, with the same value.
  bool Matches(const DeviceName& other) const;
  bool IsFull() const { return job && replica && task && type && id; }
  bool IsEmpty() const { return !job && !replica && !task && !type && !id; }
  // "/job:worker/replica:0/task:1": the task alone.
  DeviceName Task() const { return {job, replica, task, std::nullopt, std::nullopt}; }

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// Text form of outer scope overridden by inner scope.
COHORT_EXPORT std::string MergeDevices(std::string_view outer, std::string_view inner);

}  // namespace cohort
