#include "cohort/device/device_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/memory/memory_use.h"

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
              AllOf(HasSubstr("SetLogicalDevices"), HasSubstr("the first session has fixed them"),
                    HasSubstr("Virtual devices cannot be modified after being initialized")));
  EXPECT_THAT(
      MessageOf<FailedPreconditionError>([&] { config.SetVisible({kCpu}, ""); }),
      AllOf(HasSubstr("SetVisibleDevices"), HasSubstr("Visible devices cannot be modified after being initialized")));
  EXPECT_THAT(
      MessageOf<FailedPreconditionError>([&] { config.SetMemoryGrowth(kCpu, true); }),
      AllOf(HasSubstr("SetMemoryGrowth"), HasSubstr("Physical devices cannot be modified after being initialized")));
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
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetVisible({}, ""); }),
              HasSubstr("to leave /physical_device:CPU:0"));
}

// A guide's loop over the GPUs runs on a build without them; for the CPU TensorFlow throws as well.
TEST(DeviceConfigTest, OnlyMemoryOfItsOwnGrows) {
  DeviceConfig config;
  for (const PhysicalDevice& gpu : config.ListPhysical("GPU")) config.SetMemoryGrowth(gpu, true);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetMemoryGrowth(kCpu, true); }),
              AllOf(HasSubstr("memory of its own"), HasSubstr("got /physical_device:CPU:0")));
}

const PhysicalDevice kCards[] = {{"/physical_device:CARD:0", "CARD"}, {"/physical_device:CARD:1", "CARD"}};

TEST(DeviceConfigTest, OnlyVisibleDevicesAreListedAndCounted) {
  DeviceConfig config;
  for (const PhysicalDevice& card : kCards) config.AddPhysical(card);
  EXPECT_THROW(config.AddPhysical(kCards[0]), AlreadyExistsError);
  EXPECT_EQ(config.Count("CARD"), 2);
  config.SetLogical(kCards[1], 3);
  config.SetVisible({kCards[1]}, "CARD");
  EXPECT_EQ(config.ListPhysical("CARD").size(), 2u);
  EXPECT_THAT(config.Visible("CARD"), ElementsAre(kCards[1]));
  EXPECT_FALSE(config.IsHidden("CARD"));
  EXPECT_EQ(config.Count("CARD"), 3);
  EXPECT_EQ(config.Count("CPU"), 1);  // of another type
  config.SetVisible({kCpu}, "");
  EXPECT_TRUE(config.IsHidden("CARD"));
  EXPECT_EQ(config.Count("CARD"), 0);
  EXPECT_FALSE(config.IsHidden("GPU"));  // there is none that could be hidden
  config.SetVisible({kCpu, kCards[0]}, "");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { config.SetVisible({kCpu}, "CARD"); }),
              HasSubstr("expected devices of type CARD; got /physical_device:CPU:0"));
  EXPECT_THAT(config.ListLogical(""),
              ElementsAre(LogicalDevice{"/device:CPU:0", "CPU"}, LogicalDevice{"/device:CARD:0", "CARD"}));
}

TEST(DeviceConfigTest, ReplicasRunOnVisibleDevicesOfAnotherTypeThanTheHosts) {
  DeviceConfig config;
  EXPECT_EQ(config.ReplicaType(), "CPU");
  config.AddPhysical({"/physical_device:GPU:0", "GPU"});
  EXPECT_EQ(config.ReplicaType(), "GPU");
  config.SetVisible({}, "GPU");
  EXPECT_EQ(config.ReplicaType(), "CPU");
}

TEST(PhysicalDeviceListTest, APositionBehindTheLastIsAnErrorThatListsTheDevices) {
  const PhysicalDevice gpu = {"/physical_device:GPU:0", "GPU"};
  const PhysicalDeviceList gpus({gpu}, "GPU");
  EXPECT_EQ(gpus[0], gpu);
  EXPECT_EQ(gpus.at(0), gpu);
  EXPECT_EQ(MessageOf<InvalidArgumentError>([&] { (void)gpus[1]; }),
            "[config] expected the number of a device of type GPU, from 0 on; got 1; this machine has "
            "/physical_device:GPU:0");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { (void)PhysicalDeviceList({}, "GPU").at(0); }),
              HasSubstr("this machine has no device of type GPU; the log says why"));
}

TEST(DeviceConfigTest, SourcesAreAskedAtTheFirstUse) {
  DeviceConfig config;
  int asked = 0;
  config.AddSource([&asked] {
    ++asked;
    return std::vector<std::pair<PhysicalDevice, DeviceDetails>>{{kCards[0], {"Card", {9, 0}, 1 << 30}}};
  });
  EXPECT_EQ(asked, 0);
  config.Fix("the first session");
  EXPECT_EQ(config.Count("CARD"), 1);
  EXPECT_THAT(config.ListPhysical("CARD"), ElementsAre(kCards[0]));
  EXPECT_EQ(config.Details(kCards[0]), (DeviceDetails{"Card", {9, 0}, 1 << 30}));
  EXPECT_EQ(config.Details(kCpu), DeviceDetails());
  EXPECT_EQ(asked, 1);
}

TEST(DeviceConfigTest, LogicalDevicesHaveLimitsOfTheirMemory) {
  DeviceConfig config;
  config.AddPhysical(kCards[0], {"Card", {9, 0}, int64_t{1} << 30});
  config.AddPhysical(kCards[1], {"Card", {9, 0}, int64_t{1} << 30});
  const auto limits = [&](std::vector<LogicalDeviceConfiguration> logical) { config.SetLogical(kCards[0], logical); };
  limits({{100}, {0}, {200}});
  config.SetMemoryGrowth(kCards[1], false);
  const std::vector<LogicalSetting> settings = config.Logical("CARD");
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings[0].memory_limit, int64_t{100} << 20);
  EXPECT_EQ(settings[1].memory_limit, 0);
  EXPECT_EQ(settings[2].memory_limit, int64_t{200} << 20);
  EXPECT_TRUE(settings[2].memory_growth);
  EXPECT_EQ(settings[3].physical, kCards[1]);
  EXPECT_FALSE(settings[3].memory_growth);
  EXPECT_EQ(config.Count("CARD"), 4);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                limits({{1000}, {25}});
              }),
              AllOf(HasSubstr("at most the 1024 MB"), HasSubstr("got 25 MB after 1000 MB")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { limits({{-1}}); }), HasSubstr("got -1 MB"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { limits({}); }), HasSubstr("got none"));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { config.SetLogical(kCpu, std::vector<LogicalDeviceConfiguration>{{5}}); }),
      HasSubstr("whose memory is the host's"));
  config.SetLogical(kCards[0], 2);
  EXPECT_EQ(config.Count("CARD"), 3);
}

// A type of its own, whose devices remember which physical ones they were made for.
class CardBackend final : public Backend {
 public:
  const std::string& type() const override { return type_; }
  std::vector<std::unique_ptr<Device>> MakeDevices(const DeviceRequest& request) const override {
    asked_for_ = request.physical;
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < request.count; ++i) {
      devices.push_back(
          std::make_unique<Device>(*this, AttributesOf(request.task, type_, i), HostAllocator(), request.resources, 1));
    }
    return devices;
  }
  void RegisterKernels(KernelRegistry&) const override {}
  const std::vector<PhysicalDevice>& asked_for() const { return asked_for_; }

 private:
  const std::string type_ = "CARD";
  mutable std::vector<PhysicalDevice> asked_for_;
};

// The physical cards that a task's devices were made for, and the names of all its devices.
std::vector<PhysicalDevice> CardsOfATask(DeviceConfig& config, const std::map<std::string, int>& device_count,
                                         std::vector<std::string>* names) {
  const CardBackend cards;
  BackendRegistry backends(config);
  backends.Register(CpuBackend::Get());
  backends.Register(cards);
  for (const auto& device : backends.MakeDevices(DeviceName::Parse("/job:a/task:0"), device_count, 1,
                                                 std::make_shared<TaskResources>(), "session")) {
    names->push_back(device->name());
  }
  return cards.asked_for();
}

TEST(DeviceConfigTest, ATaskHasTheVisibleDevicesOnly) {
  const std::string card = "/job:a/replica:0/task:0/device:CARD:0", cpu = "/job:a/replica:0/task:0/device:CPU:0";
  DeviceConfig one, none;
  for (DeviceConfig* config : {&one, &none}) {
    for (const PhysicalDevice& device : kCards) config->AddPhysical(device);
  }
  one.SetVisible({kCards[1]}, "CARD");
  std::vector<std::string> names;
  EXPECT_THAT(CardsOfATask(one, {}, &names), ElementsAre(kCards[1]));
  EXPECT_THAT(names, ElementsAre(card, cpu));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { one.SetVisible({kCards[0]}, "CARD"); }),
              HasSubstr("the first session has fixed them"));
  none.SetVisible({}, "CARD");
  names.clear();
  CardsOfATask(none, {{"CARD", 2}}, &names);  // a session's device_count does not bring them back
  EXPECT_THAT(names, ElementsAre(cpu));
}

TEST(MemoryInfoTest, OnlyDevicesWithMemoryOfTheirOwnHaveIt) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { GetMemoryInfo("CPU:0"); }),
              HasSubstr("expected a device with memory of its own; got 'CPU:0'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { GetMemoryInfo("/device:CPU:9"); }),
              HasSubstr("got '/device:CPU:9'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ResetMemoryStats("/job:ps"); }),
              HasSubstr("the name of one device"));
}

TEST(MemoryInfoTest, CountsWhatTheAllocatorsReport) {
  MemoryUse& use = MemoryUse::Of("CPU:77");
  use.Add(100);
  use.Add(50);
  use.Remove(100);
  EXPECT_EQ(GetMemoryInfo("CPU:77"), (MemoryInfo{50, 150}));
  ResetMemoryStats("/cpu:77");
  use.Add(10);
  EXPECT_EQ(GetMemoryInfo("/device:CPU:77"), (MemoryInfo{60, 60}));
  use.Remove(60);
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
