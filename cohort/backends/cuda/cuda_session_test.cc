// Sessions on GPUs whose steps fail: bad indices, too little memory, a card that fails. It is a program of its own,
// because a card that has failed stays so until the process ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/testing/session_fixture.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CudaSessionTest : public CardsTest {};

// The error is the CPU's, and no update behind it is applied. The next step is fine.
TEST_F(CudaSessionTest, ABadIndexFailsTheStepWithTheErrorOfTheCpu) {
  std::string of_type[2];
  for (const bool gpu : {false, true}) {
    Graph g;
    const DeviceScope scope(g, gpu ? "/device:GPU:0" : "/device:CPU:0");
    const Output indices = ops::Placeholder(g, DType::kInt64, Shape{-1}, "indices");
    const ops::Variable v(g, Tensor::Vector<float>({1, 2, 3}), {.name = "v"});
    const Output rows = v.Gather(indices, "rows");
    Output after;
    {
      const ControlDependencies behind(g, {rows.node});
      after = ops::Identity(ops::Const(g, 1.0f));
      ops::AssignAddVariableOp(v.handle(), ops::Const(g, std::vector<float>{10, 10, 10}), "add");
    }
    Node* const add = g.FindNode("add");
    Session session(g, "", Config());
    session.Run(v.initializer());
    const auto run = [&](const std::vector<int64_t>& at) {
      session.Run({{indices, Tensor::Vector<int64_t>(at)}}, {rows}, {add});
    };
    of_type[gpu] = MessageOf<InvalidArgumentError>([&] { run({0, 2, 5}); });
    EXPECT_THAT(session.Run(v.Read()).ToVector<float>(), ElementsAre(1, 2, 3));
    run({0, 2});
    EXPECT_THAT(session.Run(v.Read()).ToVector<float>(), ElementsAre(11, 12, 13));
  }
  EXPECT_THAT(of_type[1], AllOf(HasSubstr("rows"), HasSubstr("GPU:0"), HasSubstr("5")));
  EXPECT_EQ(of_type[1].substr(0, of_type[1].find('\n')), of_type[0].substr(0, of_type[0].find('\n')));
}

TEST_F(CudaSessionTest, AStepThatWantsTooMuchMemoryFailsAndTheNextOneDoesNot) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:1");
  const Output size = ops::Placeholder(g, DType::kInt32, Shape{2}, "size");
  const Output filled = ops::Fill(size, ops::Const(g, 1.0f), "much");
  const Output sum = ops::Sum(filled);
  Session session(g, "", Config());
  // Twice the card's memory.
  constexpr size_t kMegabyte = size_t{1} << 20;
  const size_t megabytes = 2 * (driver_->Card(1 % driver_->CardCount()).memory_bytes / kMegabyte);
  const std::string message = MessageOf<ResourceExhaustedError>([&] {
    session.Run({{size, Tensor::Vector<int32_t>({static_cast<int32_t>(megabytes), kMegabyte / sizeof(float)})}}, {sum});
  });
  EXPECT_THAT(message, AllOf(HasSubstr(StrCat("expected ", megabytes, " MB")), HasSubstr("on GPU:1"),
                             HasSubstr("largest holders"), HasSubstr("much")));
  EXPECT_EQ(session.Run({{size, Tensor::Vector<int32_t>({10, 100})}}, {sum})[0].scalar<float>(), 1000.0f);
}

TEST_F(CudaSessionTest, PinnedMemoryThatIsNotThereIsDoneWithout) {
  COHORT_NEEDS_FAKE("it has no pinned memory when the test says so");
  Graph g;
  const DeviceScope scope(g, "/device:GPU:1");
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
  const Output y = x * 2.0f;
  Session session(g, "", Config());
  control().FailPinnedAllocation(1);
  const Tensor value = Tensor::Zeros(DType::kFloat32, Shape{123456});
  const int64_t pageable = counts_->pageable_copies();
  EXPECT_EQ(session.Run({{x, value}}, {y})[0].shape(), value.shape());
  EXPECT_EQ(counts_->pageable_copies(), pageable + 1);
}

TEST_F(CudaSessionTest, ADeviceThatDoesNotExistIsAnErrorThatListsTheDevices) {
  Graph g;
  const DeviceScope scope(g, StrCat("/device:GPU:", kCards));
  const Output x = ops::Const(g, 1.0f);
  Session session(g, "", Config());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(x * 2.0f); }),
              AllOf(HasSubstr("GPU:3"), HasSubstr("/device:GPU:2")));
}

// What a kernel with a wrong address does. The last test, because the card cannot be used any more.
TEST_F(CudaSessionTest, ACardThatFailsEndsItsSessionsStepsAndNoOthers) {
  COHORT_NEEDS_FAKE("one of its cards fails; cuda_faults_test breaks a real one");
  const int card = kCards - 1;
  Graph g;
  Output x, y, other;
  {
    const DeviceScope scope(g, StrCat("/device:GPU:", card));
    x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
    y = x * 2.0f;
  }
  {
    const DeviceScope scope(g, "/device:GPU:0");
    other = ops::Identity(ops::Const(g, 5.0f)) + 1.0f;
  }
  Session session(g, "", Config());
  const auto run = [&] { return session.Run({{x, Tensor::Vector<float>({1, 2})}}, {y})[0].ToVector<float>(); };
  EXPECT_THAT(run(), ElementsAre(2, 4));
  control().FailWork(card, 1);
  EXPECT_THAT(MessageOf<InternalError>(run), HasSubstr("illegal memory access"));
  EXPECT_THAT(MessageOf<InternalError>(run), HasSubstr("illegal memory access"));
  EXPECT_EQ(session.Run(other).scalar<float>(), 6.0f);
}

}  // namespace
}  // namespace cohort::cuda
