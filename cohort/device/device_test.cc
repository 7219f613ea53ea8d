#include "cohort/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

DeviceSet TwoCpus() {
  return DeviceSet(MakeCpuDevices(DeviceName::Parse("/job:worker/task:3"), 2, 2, std::make_shared<TaskResources>()));
}

TEST(DeviceTest, CpuDevicesAreNumberedAndShareTheTask) {
  const DeviceSet set = TwoCpus();
  ASSERT_EQ(set.devices().size(), 2u);
  Device& first = *set.devices()[0];
  Device& second = *set.devices()[1];
  EXPECT_EQ(first.name(), "/job:worker/replica:0/task:3/device:CPU:0");
  EXPECT_EQ(second.name(), "/job:worker/replica:0/task:3/device:CPU:1");
  EXPECT_EQ(first.type(), "CPU");
  EXPECT_EQ(&first.task(), &second.task());
  EXPECT_NE(first.attributes().incarnation, 0u);
  EXPECT_NE(first.attributes().incarnation, second.attributes().incarnation);
}

TEST(DeviceTest, DevicesAreFoundByFullAndByPartialName) {
  const DeviceSet set = TwoCpus();
  EXPECT_EQ(set.Find("/job:worker/replica:0/task:3/device:CPU:1"), set.devices()[1].get());
  EXPECT_EQ(set.Find("/job:worker/replica:0/task:3/device:CPU:2"), nullptr);
  EXPECT_EQ(set.Find(DeviceName::Parse("/cpu:1")), set.devices()[1].get());
  EXPECT_EQ(set.Find(DeviceName::Parse("/job:worker")), set.devices()[0].get());
  EXPECT_EQ(set.Find(DeviceName::Parse("/device:TEST:0")), nullptr);
}

TEST(DeviceTest, ADeviceNeedsAFullNameAndAThread) {
  DeviceAttributes attributes;
  attributes.name = DeviceName::Parse("/job:worker/task:0");
  attributes.type = "CPU";
  const auto task = std::make_shared<TaskResources>();
  try {
    Device device(CpuBackend::Get(), attributes, HostAllocator(), task, 1);
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("/job:worker/task:0"));
  }
  EXPECT_THROW(MakeCpuDevices(attributes.name, 1, 0, task), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
