#include "cohort/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <fstream>
#include <string>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

int NumThreads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  }
  return -1;
}

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

TEST(DeviceTest, TheComputeThreadOwnsItsTeamAndStartsLate) {
  const int before = NumThreads();
  const DeviceSet set = TwoCpus();
  Device& device = *set.devices()[0];
  EXPECT_EQ(NumThreads(), before);
  std::atomic<int> team{0};
  std::atomic<bool> own{false};
  const int here = omp_get_max_threads();
  {
    Mutex mu;
    CondVar ran;
    bool done = false;
    device.compute_thread().Schedule([&] {
      team = omp_get_max_threads();
      own = device.compute_thread().IsOwnThread();
      MutexLock lock(mu);
      done = true;
      ran.NotifyAll();
    });
    MutexLock lock(mu);
    while (!done) ASSERT_TRUE(ran.WaitFor(mu, std::chrono::seconds(60)));
  }
  EXPECT_EQ(team, 2);
  EXPECT_TRUE(own);
  EXPECT_FALSE(device.compute_thread().IsOwnThread());
  EXPECT_EQ(omp_get_max_threads(), here);
}

TEST(DeviceTest, ADeviceNeedsAFullNameAndAThread) {
  DeviceAttributes attributes;
  attributes.name = DeviceName::Parse("/job:worker/task:0");
  attributes.type = "CPU";
  const auto task = std::make_shared<TaskResources>();
  try {
    Device device(attributes, HostAllocator(), task, 1);
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("/job:worker/task:0"));
  }
  EXPECT_THROW(MakeCpuDevices(attributes.name, 1, 0, task), InvalidArgumentError);
}

TEST(DeviceTest, CpuCopiesShareTheBytes) {
  const DeviceSet set = TwoCpus();
  const Tensor value = Tensor::Vector<float>({1, 2});
  EXPECT_EQ(set.devices()[0]->CopyToHost(value).raw_data(), value.raw_data());
  EXPECT_EQ(set.devices()[0]->CopyFromHost(value).raw_data(), value.raw_data());
}

}  // namespace
}  // namespace cohort
