// DeviceAttributes: what every task of the cluster may know of a device.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/device_name.h"

namespace cohort {

// A plain value that a task sends to other tasks.
struct COHORT_EXPORT DeviceAttributes {
  DeviceName name;           // a full name
  std::string type;          // the type of its backend, such as "CPU"
  uint64_t incarnation = 0;  // a random number, new at each start of the process
  int64_t memory_limit = 0;  // in bytes; 0 if it is not known
};

}  // namespace cohort
