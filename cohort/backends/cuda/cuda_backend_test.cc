// Which devices the backend makes, and sessions on devices that fail.
#include "cohort/backends/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"

namespace cohort::cuda {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr size_t kReserved = 256 * kMegabyte;

config::LogicalSetting On(int card, int64_t megabytes = 0, bool growth = true) {
  const std::string& type = CudaBackend::Get().type();
  return {{"/physical_device:" + type + ":" + std::to_string(card), type}, megabytes << 20, growth};
}

class PlanDevicesTest : public ::testing::Test {
 protected:
  static FakeDriverOptions Options() {
    FakeDriverOptions options;
    options.cards = 3;
    options.memory_bytes = 4096 * kMegabyte;
    return options;
  }
  FakeDriver fake_{Options()};
  void SetUp() override { COHORT_NEEDS_FAKE("the test has cards of its own"); }

  const size_t all_ = 4096 * kMegabyte - kReserved;
};

TEST_F(PlanDevicesTest, EachCardHasOneDeviceWithItsFreeMemory) {
  const std::vector<DevicePart> parts = PlanDevices({}, 2, {On(0), On(1, 0, false)});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].card, 0);
  EXPECT_EQ(MemoryLimitOf(fake_, parts[0]), all_);
  EXPECT_TRUE(parts[0].memory_growth);
  EXPECT_EQ(parts[1].card, 1);
  EXPECT_FALSE(parts[1].memory_growth);
}

TEST_F(PlanDevicesTest, DevicesOfACardShareWhatTheLimitsLeave) {
  const std::vector<DevicePart> parts = PlanDevices({}, 3, {On(1), On(1, 1000), On(1)});
  EXPECT_EQ(MemoryLimitOf(fake_, parts[1]), 1000 * kMegabyte);
  EXPECT_EQ(MemoryLimitOf(fake_, parts[0]), (all_ - 1000 * kMegabyte) / 2);
  EXPECT_EQ(MemoryLimitOf(fake_, parts[2]), MemoryLimitOf(fake_, parts[0]));
  for (const DevicePart& part : parts) EXPECT_EQ(part.card, 1);
}

TEST_F(PlanDevicesTest, ASessionMayWantFewerOrMoreDevicesThanTheConfig) {
  EXPECT_EQ(PlanDevices({}, 1, {On(0), On(1)}).size(), 1u);
  const std::vector<DevicePart> more = PlanDevices({}, 3, {On(1, 100)});
  ASSERT_EQ(more.size(), 3u);
  EXPECT_EQ(MemoryLimitOf(fake_, more[0]), 100 * kMegabyte);
  EXPECT_EQ(more[2].card, 1);
  EXPECT_EQ(MemoryLimitOf(fake_, more[2]), (all_ - 100 * kMegabyte) / 2);
  const std::vector<DevicePart> unlisted = PlanDevices({1, 3}, 3, {});
  EXPECT_EQ(unlisted[0].card, 1);
  EXPECT_EQ(unlisted[1].card, 3);
  EXPECT_EQ(unlisted[2].card, 1);
}

TEST_F(PlanDevicesTest, WhatEarlierSessionsHoldDoesNotCount) {
  const std::vector<DevicePart> parts = PlanDevices({}, 1, {On(0)});
  EXPECT_EQ(MemoryLimitOf(fake_, parts[0]), all_);
  void* held = fake_.Allocate(0, 100 * kMegabyte);
  EXPECT_EQ(MemoryLimitOf(fake_, parts[0]), all_);
  fake_.Free(0, held);
}

// What is known of a driver is not taken for what is true of one that is made later in the same place.
TEST_F(PlanDevicesTest, AnotherDriverAtTheSameAddressIsAskedItself) {
  std::optional<FakeDriver> driver;
  for (const size_t megabytes : {4096, 2048}) {
    FakeDriverOptions options;
    options.memory_bytes = megabytes * kMegabyte;
    driver.emplace(options);
    EXPECT_EQ(MemoryLimitOf(*driver, PlanDevices({}, 1, {On(0)})[0]), megabytes * kMegabyte - kReserved);
  }
}

TEST_F(PlanDevicesTest, ACardThatCouldNotBeAskedIsAskedAgain) {
  fake_.control().SetFault(0, CardFault::kNotAvailable);
  const std::vector<DevicePart> parts = PlanDevices({}, 1, {On(0)});
  EXPECT_THROW(MemoryLimitOf(fake_, parts[0]), FailedPreconditionError);
  fake_.control().SetFault(0, CardFault::kOther);
  EXPECT_EQ(MemoryLimitOf(fake_, parts[0]), all_);
}

// While it exists, this driver is the one of the process.
class Installed {
 public:
  explicit Installed(Driver& driver) : before_(FindDriver()) { InstallDriver(&driver); }
  ~Installed() { InstallDriver(before_); }

 private:
  Driver* const before_;
};

TEST(ListCardsTest, LeavesOutCardsForWhichTheProgramHasNoCode) {
  COHORT_NEEDS_FAKE("the test has cards of its own");
  FakeDriverOptions options;
  options.cards = 3;
  options.problems[1] = "it is too old";
  FakeDriver driver(options);
  const Installed installed(driver);
  const auto cards = ListCards();
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].first.name, "/physical_device:GPU:0");
  EXPECT_EQ(cards[1].first.name, "/physical_device:GPU:2");
  DeviceRequest request;
  request.task = DeviceName::Parse("/job:worker/replica:0/task:0");
  request.resources = std::make_shared<TaskResources>();
  request.count = 2;
  const auto devices = CudaBackend::Get().MakeDevices(request);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(static_cast<CudaDevice&>(*devices[1]).card(), 2);
}

TEST(ListCardsTest, ABuildWithoutCudaSaysSo) {
  if (LookForDriverOfMachine() != DriverSigns::kNotBuilt) GTEST_SKIP() << "this build has CUDA";
  Driver* const before = FindDriver();
  InstallDriver(nullptr);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(ListCards().empty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("no GPU is used, and all work is done on the CPU: this build has no CUDA"));
  InstallDriver(before);
}

// A parameter server makes devices for all cards, although its graphs run on the CPU.
TEST(MakeDevicesTest, UsesNoCardBeforeTheFirstUseOfItsDevice) {
  COHORT_NEEDS_FAKE("the test has cards of its own");
  FakeDriverOptions options;
  options.cards = 2;
  FakeDriver driver(options);
  const Installed installed(driver);
  DeviceRequest request;
  request.task = DeviceName::Parse("/job:ps/replica:0/task:0");
  request.resources = std::make_shared<TaskResources>();
  request.count = 2;
  {
    const auto devices = CudaBackend::Get().MakeDevices(request);
    ASSERT_EQ(devices.size(), 2u);
    EXPECT_GT(devices[0]->attributes().memory_limit, 0);
    EXPECT_TRUE(devices[0]->compute_stream()->Record()->reached());
    EXPECT_FALSE(driver.control().has_context(0));
    devices[1]->CopyFromHost(Tensor::Scalar(1.0f));
    EXPECT_TRUE(driver.control().has_context(1));
    EXPECT_FALSE(driver.control().has_context(0));
    EXPECT_EQ(driver.control().bytes_allocated(0), 0u);
  }
  EXPECT_FALSE(driver.control().has_context(0));
}

}  // namespace
}  // namespace cohort::cuda
