// Which devices the backend makes, and sessions on devices that fail.
#include "cohort/backends/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/fake/fake_driver.h"

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
    options.cards = 2;
    options.memory_bytes = 4096 * kMegabyte;
    return options;
  }
  FakeDriver driver_{Options()};
  const size_t all_ = 4096 * kMegabyte - kReserved;
};

TEST_F(PlanDevicesTest, EachCardHasOneDeviceWithItsFreeMemory) {
  const std::vector<DevicePart> parts = PlanDevices(driver_, 2, {On(0), On(1, 0, false)});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].card, 0);
  EXPECT_EQ(parts[0].memory_limit, all_);
  EXPECT_TRUE(parts[0].memory_growth);
  EXPECT_EQ(parts[1].card, 1);
  EXPECT_FALSE(parts[1].memory_growth);
}

TEST_F(PlanDevicesTest, DevicesOfACardShareWhatTheLimitsLeave) {
  const std::vector<DevicePart> parts = PlanDevices(driver_, 3, {On(1), On(1, 1000), On(1)});
  EXPECT_EQ(parts[1].memory_limit, 1000 * kMegabyte);
  EXPECT_EQ(parts[0].memory_limit, (all_ - 1000 * kMegabyte) / 2);
  EXPECT_EQ(parts[2].memory_limit, parts[0].memory_limit);
  for (const DevicePart& part : parts) EXPECT_EQ(part.card, 1);
}

TEST_F(PlanDevicesTest, ASessionMayWantFewerOrMoreDevicesThanTheConfig) {
  EXPECT_EQ(PlanDevices(driver_, 1, {On(0), On(1)}).size(), 1u);
  const std::vector<DevicePart> more = PlanDevices(driver_, 3, {On(1, 100)});
  ASSERT_EQ(more.size(), 3u);
  EXPECT_EQ(more[0].memory_limit, 100 * kMegabyte);
  EXPECT_EQ(more[2].card, 1);
  EXPECT_EQ(more[2].memory_limit, (all_ - 100 * kMegabyte) / 2);
  const std::vector<DevicePart> unlisted = PlanDevices(driver_, 3, {});
  EXPECT_EQ(unlisted[1].card, 1);
  EXPECT_EQ(unlisted[2].card, 0);
}

TEST_F(PlanDevicesTest, WhatEarlierSessionsHoldDoesNotCount) {
  EXPECT_EQ(PlanDevices(driver_, 1, {On(0)})[0].memory_limit, all_);
  void* held = driver_.Allocate(0, 100 * kMegabyte);
  EXPECT_EQ(PlanDevices(driver_, 1, {On(0)})[0].memory_limit, all_);
  driver_.Free(0, held);
}

}  // namespace
}  // namespace cohort::cuda
