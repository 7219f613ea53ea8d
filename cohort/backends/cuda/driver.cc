#include "cohort/backends/cuda/driver.h"

#include <atomic>

#include "cohort/backends/cuda/driver_source.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

std::atomic<Driver*> installed{nullptr};
constinit DriverSource source{MakeDriver, LookForDriverOfMachine};  // tests change it before main

// The driver of the source, which is asked once.
struct Found {
  Driver* driver = nullptr;
  std::string why;
};

const Found& FindOnce() {
  static const auto* const found = [] {
    auto* result = new Found;
    result->driver = source.make(&result->why);
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

DriverSigns LookForDriver() { return installed.load() != nullptr ? DriverSigns::kSome : source.look(); }

void InstallDriver(Driver* driver) { installed.store(driver); }

void InstallDriverSource(const DriverSource& of_test) { source = of_test; }

}  // namespace cohort::cuda
