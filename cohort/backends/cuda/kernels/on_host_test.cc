// Which ops run on GPUs, and that ops on the host compute what the CPU's do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/device/kernel.h"

namespace cohort::cuda {
namespace {

TEST(OnHostTest, EachOpOfTheCpuRunsOnGpus) {
  RegisterGpusForTests();
  const KernelRegistry& registry = KernelRegistry::Global();
  // A pass of the CPU's backend makes these nodes, for an order of images that only the CPU has.
  const std::vector<std::string> kOfCpu = {"_FromBlocked", "_ToBlocked"};
  std::vector<std::string> missing;
  for (const std::string& op : registry.OpsOn(kHostDeviceType)) {
    if (!registry.Has(op, kGpu)) missing.push_back(op);
  }
  EXPECT_THAT(missing, ::testing::UnorderedElementsAreArray(kOfCpu));
}

}  // namespace
}  // namespace cohort::cuda
