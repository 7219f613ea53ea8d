// Which ops run on GPUs, and that each of them whose work is done on the host stands in the list with a reason.
#include "cohort/backends/cuda/kernels/on_host.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/device/kernel.h"
#include "cohort/registration.h"

namespace cohort::cuda {
namespace {

using Names = std::set<std::string, std::less<>>;

class OnHostTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    RegisterAll();
    RegisterGpusForTests();
  }
  static Names Set(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

  const Names of_cpu_ = Set(KernelRegistry::Global().OpsOn(kHostDeviceType));
  const Names of_gpu_ = Set(KernelRegistry::Global().OpsOn(kGpu));
  const Names of_any_device_ = Set(KernelRegistry::Global().HostOps());
};

TEST_F(OnHostTest, EachOpHasAKernelOfGpusOrAReason) {
  ASSERT_GT(of_cpu_.size(), 100u);
  ASSERT_GT(of_any_device_.size(), 50u);
  Names listed;
  for (const OpOnHost& entry : OpsOnHost()) {
    EXPECT_FALSE(entry.why.empty()) << entry.op;
    EXPECT_TRUE(listed.emplace(entry.op).second) << entry.op << " is there twice";
  }
  // A pass of the CPU's backend makes these nodes, for an order of images that only processors with AVX-512 have.
  const Names only_of_cpu = {"_FromBlocked", "_ToBlocked"};
  for (const Names* ops : {&of_cpu_, &of_any_device_}) {
    for (const std::string& op : *ops) {
      EXPECT_TRUE(of_gpu_.contains(op) || listed.contains(op) || only_of_cpu.contains(op))
          << op << " has no kernel of GPUs; write one, or say in on_host.cc why its work is done on the host";
    }
  }
  for (const std::string& op : only_of_cpu) EXPECT_FALSE(KernelRegistry::Global().Has(op, kGpu)) << op;
}

TEST_F(OnHostTest, TheListSaysWhoDoesTheWork) {
  for (const OpOnHost& entry : OpsOnHost()) {
    const bool is_common = entry.worker == WorkerOnHost::kAnyDevice;
    EXPECT_EQ(of_any_device_.contains(entry.op), is_common) << entry.op;
    EXPECT_EQ(of_gpu_.contains(entry.op), !is_common) << entry.op << " has a kernel of GPUs, or none";
    EXPECT_TRUE(is_common || of_cpu_.contains(entry.op)) << entry.op;
  }
}

}  // namespace
}  // namespace cohort::cuda
