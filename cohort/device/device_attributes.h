// DeviceAttributes: what is known of a device anywhere in the cluster.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/device_name.h"

namespace cohort {

struct COHORT_EXPORT DeviceAttributes {
  DeviceName name;           // full
  std::string type;          // as its backend says
  uint64_t incarnation = 0;  // random, new at each start of the process
  int64_t memory_limit = 0;  // bytes, 0 = unknown
};

}  // namespace cohort
