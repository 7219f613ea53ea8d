#include "cohort/device/device_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const DeviceFactories& factories, const std::map<std::string, int>& device_count) {
  std::vector<std::string> names;
  const auto devices =
      factories.Make(DeviceName::Parse("/job:ps/task:1"), device_count, 1, std::make_shared<TaskResources>(), "server");
  for (const auto& device : devices) names.push_back(device->name());
  return names;
}

TEST(DeviceFactoryTest, MakesWhatIsAskedForAndOneCpu) {
  DeviceFactories factories;
  factories.Register("FAKE", [](const DeviceRequest& request) {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < request.count; ++i) {
      devices.push_back(
          std::make_unique<Device>(AttributesOf(request.task, "FAKE", i), HostAllocator(), request.resources, 1));
    }
    return devices;
  });
  const std::string task = "/job:ps/replica:0/task:1/device:";
  EXPECT_THAT(Names(factories, {}), ElementsAre(task + "CPU:0"));
  EXPECT_THAT(Names(factories, {{"CPU", 2}, {"FAKE", 1}}),
              ElementsAre(task + "CPU:0", task + "CPU:1", task + "FAKE:0"));
  EXPECT_THAT(Names(factories, {{"FAKE", 0}, {"GPU", 4}}), ElementsAre(task + "CPU:0"));  // GPU: there is none
}

TEST(DeviceFactoryTest, RefusesATaskWithoutCpuAndASecondFactory) {
  DeviceFactories factories;
  try {
    Names(factories, {{"CPU", 0}});
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("[server] device_count of CPU must be at least 1; got 0"));
  }
  EXPECT_THROW(factories.Register("CPU", nullptr), AlreadyExistsError);
}

}  // namespace
}  // namespace cohort
