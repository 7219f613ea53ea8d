// Buckets of gradients are reduced while the backward pass goes on: a pass that waits, before its last gradient, until
// the others have the first bucket's sum would else wait for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/test/test_kernels.h"
#include "cohort/collective/gradient_reduction.h"
#include "cohort/collective/testing/in_graph.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/matmul.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::InGraph;
using testing::Place;

// Who has the first bucket's sum, in this step.
struct SumBoard {
  Mutex mu;
  CondVar changed;
  int members COHORT_GUARDED_BY(mu) = 0;
};
SumBoard& TheSumBoard() {
  static auto* const board = new SumBoard;
  return *board;
}

// Says that its member has the value, which it hands on.
void HasSum(KernelContext& ctx) {
  SumBoard& board = TheSumBoard();
  MutexLock lock(board.mu);
  ++board.members;
  board.changed.NotifyAll();
  ctx.SetOutput(0, ctx.input(0));
}

// Keeps its thread, as computing does, until so many members have the sum; hands on its input.
void AwaitSums(KernelContext& ctx) {
  SumBoard& board = TheSumBoard();
  const auto members = static_cast<int>(ctx.node().attr<int64_t>("members"));
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(ctx.node().attr<int64_t>("deadline_in_ms"));
  MutexLock lock(board.mu);
  while (board.members < members) {
    if (board.changed.WaitUntil(board.mu, deadline) || board.members >= members) continue;
    throw DeadlineExceededError(StrCat("expected ", members, " sums of the first bucket; got ", board.members));
  }
  ctx.SetOutput(0, ctx.input(0));
}

void RegisterOverlapOps() {
  if (OpRegistry::Global().Find("OverlapHasSum") != nullptr) return;
  const auto same = [](ShapeContext& c) { return std::vector<Shape>{c.input(0)}; };
  OpRegistry::Global().Register(
      OpDef("OverlapHasSum").Input("x: float32").Output("y: float32").ShapeRule(same).Stateful());
  OpRegistry::Global().Register(OpDef("OverlapAwaitSums")
                                    .Input("x: float32")
                                    .Output("y: float32")
                                    .Attr("members: int")
                                    .Attr("deadline_in_ms: int")
                                    .ShapeRule(same)
                                    .Stateful());
  KernelRegistry::Global().RegisterFn("OverlapHasSum", "CPU", HasSum);
  KernelRegistry::Global().RegisterFn("OverlapAwaitSums", "CPU", AwaitSums);
  RegisterTestKernels(KernelRegistry::Global());
}

class GradientOverlap : public InGraph {
 protected:
  static constexpr int64_t kSide = 40;

  GradientOverlap() { RegisterOverlapOps(); }

  // y = x w0 w1 w2 at each member, where x is (rank + 1) * fed and all weights are the unit matrix; of the loss y^2 / 2
  // all gradients are x^2. Rank 0's backward pass waits before w0's. Returns the reduced ones, of each member in turn.
  std::vector<Output> Program(int64_t bytes_per_pack, std::chrono::milliseconds deadline) {
    Tensor unit = Tensor::Zeros(DType::kFloat32, {kSide, kSide});
    for (int64_t i = 0; i < kSide; ++i) unit.data<float>()[i * kSide + i] = 1.0f;
    std::vector<std::vector<Output>> replicas(static_cast<size_t>(world()));
    for (int rank = 0; rank < world(); ++rank) {
      const DeviceScope device(graph_, keys_.members[static_cast<size_t>(rank)]);
      const Output seed = ops::Const(graph_, unit);
      const std::vector<Output> w = {ops::Identity(seed), ops::Identity(seed), ops::Identity(seed)};
      const Output h1 = ops::MatMul(ops::Mul(seed, fed_ * static_cast<float>(rank + 1)), w[0]);
      const Output y = ops::MatMul(ops::MatMul(h1, w[1]), w[2]);
      const std::vector<Gradient> late = Gradients({y}, {w[2], w[1], h1}, {y});
      Output of_h1 = ToDense(late[2]);
      if (rank == 0) {
        of_h1 = graph_.Op("OverlapAwaitSums")
                    .Input(of_h1)
                    .Attr("members", world() - 1)
                    .Attr("deadline_in_ms", static_cast<int64_t>(deadline.count()))
                    .Finish1();
      }
      const Output of_w0 = ToDense(Gradients({h1}, {w[0]}, {of_h1})[0]);
      replicas[static_cast<size_t>(rank)] = {of_w0, ToDense(late[1]), ToDense(late[0])};
    }
    GradientReduction how;
    how.keys = keys_;
    how.bytes_per_pack = bytes_per_pack;
    how.devices = keys_.members;
    std::vector<Output> reduced;
    for (const std::vector<Output>& sums : ReduceGradients(replicas, how)) {
      const DeviceScope device(graph_, sums[2].node->device());
      const bool others = !reduced.empty();
      reduced.insert(reduced.end(), {sums[0], sums[1]});
      reduced.push_back(others ? graph_.Op("OverlapHasSum").Input(sums[2]).Finish1() : sums[2]);
    }
    return reduced;
  }
  std::vector<Tensor> Step(Session& session, const std::vector<Output>& fetches, float value) {
    {
      SumBoard& board = TheSumBoard();
      MutexLock lock(board.mu);
      board.members = 0;
    }
    return session.Run({{fed_, Tensor::Scalar(value)}}, fetches, {}, Patience());
  }

  const Output fed_ = ops::Placeholder(graph_, DType::kFloat32, Shape{});
};

TEST_P(GradientOverlap, TheFirstBucketIsReducedBeforeTheBackwardPassEnds) {
  const std::vector<Output> fetches = Program(1, std::chrono::seconds(30));
  const auto session = Open();
  const int sum_of_squares = world() * (world() + 1) * (2 * world() + 1) / 6;
  for (int step = 1; step <= 5; ++step) {
    for (const Tensor& gradient : Step(*session, fetches, static_cast<float>(step))) {
      for (int64_t i = 0; i < kSide * kSide; ++i) {
        const int expected = i % (kSide + 1) == 0 ? step * step * sum_of_squares : 0;
        ASSERT_EQ(gradient.data<float>()[i], static_cast<float>(expected)) << "step " << step << " element " << i;
      }
    }
  }
}

// That the test above tells the difference.
TEST_P(GradientOverlap, OneBucketForAllWaitsForTheBackwardPass) {
  const std::vector<Output> fetches = Program(int64_t{1} << 30, std::chrono::milliseconds(100));
  const auto session = Open();
  try {
    Step(*session, fetches, 1);
    ADD_FAILURE() << "the first bucket was reduced without the last gradient";
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("OverlapAwaitSums"), HasSubstr("got 0")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientOverlap,
                         ::testing::ValuesIn(testing::Built<Place>({{"local", 0, 2},
                                                                    {"local", 0, 3},
                                                                    {"in_process", 3},
                                                                    {"grpc", 3},
                                                                    {"grpc", 2, 2},
                                                                    {"local", 0, 3, "auto", "TEST"},
                                                                    {"in_process", 2, 2, "auto", "TEST"},
                                                                    {"local", 0, 2, "gloo"},
                                                                    {"grpc", 3, 1, "gloo"}})),
                         [](const auto& info) { return StrCat(info.param); });

}  // namespace
}  // namespace cohort::collective
