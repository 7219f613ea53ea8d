#include "cohort/backends/cpu/cpu_device.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <fstream>
#include <string>

#include "cohort/backends/cpu/cpu_backend.h"

namespace cohort {
namespace {

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

TEST(CpuDeviceTest, TheComputeThreadOwnsItsTeamAndStartsLate) {
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

TEST(CpuDeviceTest, ElsewhereKernelsHaveOneThread) {
  const DeviceSet set = TwoCpus();
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  {
    const OneThreadScope inactive(*set.devices()[0], false);
    EXPECT_EQ(omp_get_max_threads(), 3);
    const OneThreadScope active(*set.devices()[0], true);
    EXPECT_EQ(omp_get_max_threads(), 1);
    const OneThreadScope again(*set.devices()[0], true);
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

TEST(CpuDeviceTest, CpuCopiesShareTheBytes) {
  const DeviceSet set = TwoCpus();
  const Tensor value = Tensor::Vector<float>({1, 2});
  EXPECT_EQ(set.devices()[0]->CopyToHost(value).raw_data(), value.raw_data());
  EXPECT_EQ(set.devices()[0]->CopyFromHost(value).raw_data(), value.raw_data());
}

TEST(CpuDeviceTest, DevicesBelongToTheCpusBackend) {
  const DeviceSet set = TwoCpus();
  EXPECT_EQ(&set.devices()[0]->backend(), &CpuBackend::Get());
  EXPECT_EQ(CpuBackend::Get().type(), "CPU");
  EXPECT_FALSE(CpuBackend::Get().has_streams());
}

}  // namespace
}  // namespace cohort
