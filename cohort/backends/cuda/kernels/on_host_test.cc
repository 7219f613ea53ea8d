// Which ops run on GPUs, and that ops on the host compute what the CPU's do.
#include <gtest/gtest.h>

#include <set>
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
  // A pass of the CPU's backend makes these nodes, for an order of images that only processors with AVX-512 have.
  const std::set<std::string> kOfCpu = {"_FromBlocked", "_ToBlocked"};
  const std::vector<std::string> ops = registry.OpsOn(kHostDeviceType);
  EXPECT_GT(ops.size(), 100u);
  for (const std::string& op : ops) EXPECT_EQ(registry.Has(op, kGpu), kOfCpu.count(op) == 0) << op;
}

}  // namespace
}  // namespace cohort::cuda
