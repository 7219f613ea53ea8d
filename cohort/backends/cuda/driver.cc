#include "cohort/backends/cuda/driver.h"

#include <atomic>

#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

std::atomic<Driver*> installed{nullptr};

// The driver of the machine, which is looked for once.
struct Found {
  Driver* driver = nullptr;
  std::string why;
};

const Found& FindOnce() {
  static const auto* const found = [] {
    auto* result = new Found;
    result->driver = MakeDriver(&result->why);
    return result;
  }();
  return *found;
}

}  // namespace

const void* Driver::LoadKernel(int, const std::string&, const char* name) {
  throw InternalError(
      StrCat("[cuda] expected a driver that loads kernels for ", name, "; got one that runs them on the host"));
}

Driver* FindDriver(std::string* why) {
  if (Driver* driver = installed.load()) return driver;
  const Found& found = FindOnce();
  if (why != nullptr) *why = found.why;
  return found.driver;
}

DriverSigns LookForDriver() { return installed.load() != nullptr ? DriverSigns::kSome : LookForDriverOfMachine(); }

void InstallDriver(Driver* driver) { installed.store(driver); }

}  // namespace cohort::cuda
