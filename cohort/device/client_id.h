// ClientId: the process for which a task runs steps.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"

namespace cohort {

// The process that is the master of a session. It keeps its id when it connects again.
struct COHORT_EXPORT ClientId {
  std::string task;          // full name: "/job:worker/replica:0/task:1"
  uint64_t incarnation = 0;  // random at each start of the process
  friend bool operator==(const ClientId&, const ClientId&) = default;
};

// The session that a step belongs to. A client numbers the steps of each of its sessions 1, 2, 3...
struct COHORT_EXPORT StepOrigin {
  ClientId client;
  uint64_t session = 0;
};

}  // namespace cohort
