#include "cohort/runtime/debugging.h"

#include <atomic>

namespace cohort::debugging {
namespace {

std::atomic<bool> log_device_placement{false};

}  // namespace

void SetLogDevicePlacement(bool enabled) { log_device_placement.store(enabled, std::memory_order_relaxed); }
bool GetLogDevicePlacement() { return log_device_placement.load(std::memory_order_relaxed); }

}  // namespace cohort::debugging
