// CoordinatorOptions: the limits of a ClusterCoordinator.
#pragma once

#include <chrono>

#include "cohort/core/export.h"
#include "cohort/runtime/session.h"

namespace cohort::distribute {

struct COHORT_EXPORT CoordinatorOptions {
  // The most closures that run on one worker at the same time.
  int closures_in_flight = 4;
  // A closure that runs longer fails with DeadlineExceededError. Zero: there is no limit.
  std::chrono::milliseconds closure_timeout = std::chrono::hours(1);
  // If no worker has answered for this time, the coordinator fails with UnavailableError.
  std::chrono::milliseconds worker_timeout = std::chrono::hours(1);
  // If a parameter server cannot be reached for this time, the coordinator fails with UnavailableError. A shorter loss
  // of its connections only repeats closures.
  std::chrono::milliseconds ps_timeout = std::chrono::seconds(60);
  // How long a connection to a task may take before the worker counts as missing.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  SessionConfig session = {};  // of the sessions; connect_timeout replaces its field
};

}  // namespace cohort::distribute
