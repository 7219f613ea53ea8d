// NcclLibrary with one member: what one card can try of the real NCCL. The suites of collective/ have several members,
// on fakes.
#include "cohort/backends/cuda/collectives/nccl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "cohort/backends/cuda/fake/compare.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

using cohort::testing::SomeValues;

constexpr std::chrono::seconds kLong{60};

class NcclLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      library_.Open();
    } catch (const FailedPreconditionError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  Device& device() { return *device_; }
  std::unique_ptr<LibraryCommunicator> Connect() {
    return library_.Connect(device(), library_.NewId(), 0, 1, [] {});
  }
  static bool BecomesIdle(LibraryCommunicator& communicator) {
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (!communicator.IsIdle()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  NcclLibrary library_;
  const std::unique_ptr<Device> device_ = MakeGpuForTests();
};

TEST_F(NcclLibraryTest, EachCollectiveOfOneMemberGivesItsInput) {
  const std::unique_ptr<LibraryCommunicator> communicator = Connect();
  ASSERT_TRUE(BecomesIdle(*communicator));
  using Kind = LibraryCollective;
  const std::pair<Kind, ReduceOp> collectives[] = {{Kind::kAllReduce, ReduceOp::kSum},
                                                   {Kind::kAllReduce, ReduceOp::kMean},
                                                   {Kind::kReduceScatter, ReduceOp::kSum},
                                                   {Kind::kAllGather, ReduceOp::kSum},
                                                   {Kind::kBroadcast, ReduceOp::kSum}};
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    for (const auto& [kind, op] : collectives) {
      for (const Shape& shape : {Shape{1}, Shape{1000, 3}, Shape{0, 3}}) {
        SCOPED_TRACE(StrCat(dtype, " kind ", static_cast<int>(kind), " op ", static_cast<int>(op), " ", shape));
        const Tensor value = SomeValues(dtype, shape, 1);
        LibraryCall call{kind, op, 0, device().CopyFromHost(value), Tensor(dtype, shape, device().allocator())};
        const Tensor output = call.output;
        communicator->Begin(std::move(call));
        ASSERT_TRUE(BecomesIdle(*communicator));
        EXPECT_EQ(device().CopyToHost(output).ToString(10000), value.ToString(10000));
      }
    }
  }
}

TEST_F(NcclLibraryTest, ACommunicatorCanBeAbortedWhileItConnectsAndAnotherOneWorks) {
  Connect()->Abort();
  const std::unique_ptr<LibraryCommunicator> communicator = Connect();
  ASSERT_TRUE(BecomesIdle(*communicator));
  communicator->Abort();
  communicator->Abort();
}

}  // namespace
}  // namespace cohort::cuda
