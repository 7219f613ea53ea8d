#include "cohort/device/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Devices that nothing runs on.
class FakeBackend final : public Backend {
 public:
  const std::string& type() const override { return type_; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < request.count; ++i) {
      devices.push_back(
          std::make_unique<Device>(*this, AttributesOf(request.task, type_, i), HostAllocator(), request.resources, 1));
    }
    return devices;
  }
  void RegisterKernels(KernelRegistry& registry) const override {
    registry.RegisterFn("BackendTestOp", type_, [](KernelContext&) {});
  }

 private:
  const std::string type_ = "FAKE";
};

const FakeBackend& Fake() {
  static const FakeBackend backend;
  return backend;
}

std::vector<std::string> Names(const BackendRegistry& backends, const std::map<std::string, int>& device_count) {
  std::vector<std::string> names;
  const auto devices = backends.MakeDevices(DeviceName::Parse("/job:ps/task:1"), device_count, 1,
                                            std::make_shared<TaskResources>(), "server");
  for (const auto& device : devices) names.push_back(device->name());
  return names;
}

TEST(BackendRegistryTest, MakesTheDevicesThatAreAskedForAndOneOfTheHost) {
  BackendRegistry backends;
  backends.Register(CpuBackend::Get());
  backends.Register(Fake());
  EXPECT_THAT(backends.types(), ElementsAre("CPU", "FAKE"));
  const std::string task = "/job:ps/replica:0/task:1/device:";
  EXPECT_THAT(Names(backends, {}), ElementsAre(task + "CPU:0"));
  EXPECT_THAT(Names(backends, {{"CPU", 2}, {"FAKE", 1}}), ElementsAre(task + "CPU:0", task + "CPU:1", task + "FAKE:0"));
  EXPECT_THAT(Names(backends, {{"FAKE", 0}, {"GPU", 4}}), ElementsAre(task + "CPU:0"));  // GPU: has no backend
}

TEST(BackendRegistryTest, ADeviceKnowsItsBackend) {
  const auto devices =
      Fake().MakeDevices({DeviceName::Parse("/job:ps/task:1"), 1, 1, std::make_shared<TaskResources>()});
  EXPECT_EQ(&devices.at(0)->backend(), &Fake());
}

TEST(BackendRegistryTest, DeviceNamesMayBeginWithTheTypeOfABackend) {
  BackendRegistry backends;
  backends.Register(Fake());
  EXPECT_EQ(DeviceName::Parse("/fake:1").ToString(), "/device:FAKE:1");
}

TEST(BackendRegistryTest, RefusesATaskWithoutAHostDeviceAndASecondBackendOfAType) {
  BackendRegistry backends;
  backends.Register(CpuBackend::Get());
  try {
    Names(backends, {{"CPU", 0}});
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("[server] device_count of CPU must be at least 1; got 0"));
  }
  EXPECT_THROW(backends.Register(CpuBackend::Get()), AlreadyExistsError);
}

TEST(BackendRegistryTest, SaysThatTheHostsBackendIsMissing) {
  BackendRegistry backends;
  backends.Register(Fake());
  try {
    Names(backends, {});
    FAIL();
  } catch (const FailedPreconditionError& e) {
    EXPECT_THAT(e.what(), HasSubstr("expected a backend for devices of type CPU; got backends for [FAKE]"));
  }
}

TEST(BackendTest, ABackendWithoutChainsSaysSo) {
  EXPECT_FALSE(Fake().CanChain({}, {}));
  EXPECT_THROW(Fake().MakeChain({}), InternalError);
}

}  // namespace
}  // namespace cohort
