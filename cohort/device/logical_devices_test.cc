#include "cohort/device/logical_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/core/testing/throws.h"

namespace cohort::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PhysicalDevice kCpu = {"/physical_device:CPU:0", "CPU"};

TEST(DeviceConfigTest, OneCpuUntilItIsDivided) {
  DeviceConfig config;
  EXPECT_THAT(config.ListPhysical(""), ElementsAre(kCpu));
  EXPECT_THAT(config.ListPhysical("CPU"), ElementsAre(kCpu));
  EXPECT_THAT(config.ListPhysical("GPU"), IsEmpty());
  EXPECT_EQ(config.Count("CPU"), 1);
  EXPECT_EQ(config.Count("GPU"), 0);
  EXPECT_FALSE(config.IsSet("CPU"));
  // In any order, and again.
  config.SetLogical(kCpu, 7);
  config.SetVisible({kCpu}, "CPU");
  config.SetLogical(kCpu, 2);
  config.SetVisible({}, "GPU");
  EXPECT_THAT(config.ListLogical(""),
              ElementsAre(LogicalDevice{"/device:CPU:0", "CPU"}, LogicalDevice{"/device:CPU:1", "CPU"}));
  EXPECT_THAT(config.ListLogical("GPU"), IsEmpty());
  EXPECT_TRUE(config.IsSet("CPU"));
}

TEST(DeviceConfigTest, WhatComesAfterTheFirstUseNamesIt) {
  DeviceConfig config;
  config.Fix("the first session");
  config.Fix("another one");
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { config.SetLogical(kCpu, 2); }),
              AllOf(HasSubstr("SetLogicalDevices"), HasSubstr("the first session has fixed them")));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { config.SetVisible({kCpu}, ""); }),
              HasSubstr("SetVisibleDevices"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { config.SetMemoryGrowth(kCpu, true); }),
              HasSubstr("SetMemoryGrowth"));
  EXPECT_EQ(config.Count("CPU"), 1);
  DeviceConfig listed;
  listed.ListLogical("");
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { listed.SetLogical(kCpu, 2); }),
              HasSubstr("ListLogicalDevices has fixed them"));
}

TEST(DeviceConfigTest, DevicesThatThereAreNot) {
  DeviceConfig config;
  const PhysicalDevice gpu = {"/physical_device:GPU:0", "GPU"};
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetVisible({gpu}, "GPU"); }),
              AllOf(HasSubstr("/physical_device:GPU:0"), HasSubstr("/physical_device:CPU:0")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetLogical(gpu, 2); }), HasSubstr("GPU:0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetLogical(kCpu, 0); }), HasSubstr("got 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetVisible({}, ""); }), HasSubstr("of type CPU"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetMemoryGrowth(kCpu, true); }),
              AllOf(HasSubstr("memory of its own"), HasSubstr("/physical_device:CPU:0")));
}

TEST(DeviceConfigTest, TheDevicesOfATaskFixThem) {
  BackendRegistry backends;
  backends.Register(CpuBackend::Get());
  const auto devices = backends.MakeDevices(DeviceName::Parse("/job:localhost/task:0"), {}, 1,
                                            std::make_shared<TaskResources>(), "session");
  EXPECT_EQ(static_cast<int>(devices.size()), DeviceConfig::Global().Count("CPU"));
  EXPECT_THROW(SetLogicalDevices(ListPhysicalDevices("CPU").at(0), 2), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::config
