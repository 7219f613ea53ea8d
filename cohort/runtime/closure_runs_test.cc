// Runs of closures: a task makes each update of a closure once, however often the closure runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/accumulators.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/math.h"
#include "cohort/ops/queues.h"
#include "cohort/ops/random.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

const bool kClosureRunsRegistered = [] {
  testing::RegisterForDeviceKinds();
  return true;
}();

class ClosureRunsTest : public testing::DeviceKindTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ClosureRunsTest, testing::AllDeviceKinds(), testing::DeviceKindName);

RunOptions OfClosure(uint64_t coordinator, int64_t number, int64_t lowest = 1) {
  RunOptions options;
  options.closure = {coordinator, number, lowest};
  return options;
}

TEST_P(ClosureRunsTest, AnUpdateIsMadeOnceForEachClosure) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, Tensor::Scalar(0.0f), {.name = "v"});
  const ops::Variable w(g, Tensor::Scalar(0.0f), {.name = "w"});
  // The copies of two workers have other names, and make equal updates.
  Node* first = ops::Group(g, {v.AssignAdd(1.0f, "first"), w.AssignAdd(2.0f, "first_w")}, "first_group");
  Node* second = ops::Group(g, {v.AssignAdd(1.0f, "second"), w.AssignAdd(2.0f, "second_w")}, "second_group");
  Session session(g, "", config());
  session.Run(ops::GlobalVariablesInitializer(g));
  const auto values = [&] {
    const RunResults read = session.Run({v, w});
    return std::pair(read[0].scalar<float>(), read[1].scalar<float>());
  };
  session.Run({}, {}, {first}, OfClosure(9, 1));
  EXPECT_EQ(values(), std::pair(1.0f, 2.0f));
  session.Run({}, {}, {second}, OfClosure(9, 1));
  EXPECT_EQ(values(), std::pair(1.0f, 2.0f));
  session.Run({}, {}, {second}, OfClosure(9, 2));
  EXPECT_EQ(values(), std::pair(2.0f, 4.0f));
  session.Run({}, {}, {first}, OfClosure(10, 1));
  EXPECT_EQ(values(), std::pair(3.0f, 6.0f));
  session.Run({}, {}, {first});
  session.Run({}, {}, {first});
  EXPECT_EQ(values(), std::pair(5.0f, 10.0f));
  session.Run({}, {}, {first}, OfClosure(9, 3, /*lowest=*/3));
  session.Run({}, {}, {first}, OfClosure(9, 1));  // a late attempt
  EXPECT_EQ(values(), std::pair(6.0f, 12.0f));
}

TEST_P(ClosureRunsTest, TwoEqualUpdatesOfAClosureAreBothMade) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, Tensor::Scalar(0.0f), {.name = "v"});
  Node* both = ops::Group(g, {v.AssignAdd(1.0f), v.AssignAdd(1.0f)}, "both");
  Session session(g, "", config());
  session.Run(ops::GlobalVariablesInitializer(g));
  for (int run = 0; run < 2; ++run) session.Run({}, {}, {both}, OfClosure(9, 1));
  EXPECT_EQ(session.Run(v.value()).scalar<float>(), 2.0f);
}

TEST_P(ClosureRunsTest, AnUpdateThatFailedIsMadeByTheNextAttempt) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, Tensor::Vector<float>({0, 0}), {.name = "v"});
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
  Node* add = v.AssignAdd(x);
  Session session(g, "", config());
  session.Run(ops::GlobalVariablesInitializer(g));
  EXPECT_THROW(session.Run({{x, Tensor::Vector<float>({1, 2, 3})}}, {}, {add}, OfClosure(9, 1)), InvalidArgumentError);
  for (int run = 0; run < 2; ++run) {
    session.Run({{x, Tensor::Vector<float>({1, 2})}}, {}, {add}, OfClosure(9, 1));
  }
  EXPECT_EQ(session.Run(v.value()).ToVector<float>(), (std::vector<float>{1, 2}));
}

// What a step adds to an accumulator and to a queue.
struct Additions {
  Additions() : x(ops::Placeholder(g, DType::kFloat32, Shape{}, "x")) {
    const ops::ConditionalAccumulator dense(g, DType::kFloat32, Shape{}, {.name = "dense"});
    const ops::SparseConditionalAccumulator sparse(g, DType::kFloat32, Shape{4, 1}, {.name = "sparse"});
    const ops::FIFOQueue queue(g, {DType::kFloat32}, {.capacity = 2, .shapes = {Shape{}}, .name = NodeName("queue")});
    const Gradient row(ops::Reshape(x, ops::Const(g, std::vector<int32_t>{1, 1})),
                       ops::Const(g, std::vector<int64_t>{2}), ops::Const(g, std::vector<int64_t>{4, 1}));
    add = ops::Group(g, {dense.ApplyGrad(x, int64_t{0}), sparse.ApplyIndexedSlicesGrad(row, int64_t{0})}, "add");
    put = queue.Enqueue({x});
    take = queue.Dequeue()[0];
    put_with_check = [&] {
      const ControlDependencies after(g, {put});
      return ops::Assert(ops::Less(x, 0.0f), {x});
    }();
    counts = {dense.NumAccumulated(), sparse.NumAccumulated(), queue.Size()};
  }
  std::vector<int32_t> Counts(Session& session) const {
    std::vector<int32_t> values;
    for (const Tensor& count : session.Run(counts)) values.push_back(count.scalar<int32_t>());
    return values;
  }
  Graph g;
  Output x, take;
  Node *add = nullptr, *put = nullptr, *put_with_check = nullptr;
  std::vector<Output> counts;
};

TEST(ClosureAdditionsTest, AGradientAndAnElementAreAddedOnceForEachClosure) {
  Additions model;
  Session session(model.g);
  const FeedList one = {{model.x, Tensor::Scalar(1.0f)}};
  for (int run = 0; run < 3; ++run) session.Run(one, {}, {model.add, model.put}, OfClosure(9, 1));
  EXPECT_EQ(model.Counts(session), (std::vector<int32_t>{1, 1, 1}));
  session.Run(one, {}, {model.add, model.put}, OfClosure(9, 2));
  EXPECT_EQ(model.Counts(session), (std::vector<int32_t>{2, 2, 2}));
  session.Run(one, {}, {model.add});
  EXPECT_EQ(model.Counts(session), (std::vector<int32_t>{3, 3, 2}));
}

TEST(ClosureAdditionsTest, AnAdditionIsMadeOnceAlsoIfTheStepFailsAfterwards) {
  Additions model;
  Session session(model.g);
  const FeedList one = {{model.x, Tensor::Scalar(1.0f)}};
  for (int run = 0; run < 2; ++run) {
    EXPECT_THROW(session.Run(one, {}, {model.put_with_check}, OfClosure(9, 1)), InvalidArgumentError);
  }
  EXPECT_EQ(model.Counts(session)[2], 1);
}

TEST(ClosureAdditionsTest, AnAdditionThatFailedIsMadeByTheNextAttempt) {
  Additions model;
  Session session(model.g);
  const FeedList one = {{model.x, Tensor::Scalar(1.0f)}};
  session.Run(one, {}, {model.put});
  session.Run(one, {}, {model.put});
  RunOptions late = OfClosure(9, 1);
  late.timeout = std::chrono::milliseconds(50);
  EXPECT_THROW(session.Run(one, {}, {model.put}, late), DeadlineExceededError);  // the queue is full
  session.Run(model.take);
  session.Run(one, {}, {model.put}, OfClosure(9, 1));
  EXPECT_EQ(model.Counts(session)[2], 2);
}

// The body of a loop makes the same update in each iteration.
TEST_P(ClosureRunsTest, UpdatesInsideOfLoopsAreMadeOnce) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, Tensor::Scalar(0), {.name = "v"});
  const ops::Variable w(g, Tensor::Scalar(0), {.name = "w"});
  const Output iterations = ops::Placeholder(g, DType::kInt32, Shape(), "iterations");
  const Output last = ops::While(
      {ops::Const(g, 0)},
      [&](Graph&, const std::vector<Output>& i) { return std::vector{ops::Less(i[0], iterations)}; },
      [&](Graph& body, const std::vector<Output>& i) {
        ops::AssignAddVariableOp(v.handle(), i[0] + 1);
        ops::AssignAddVariableOp(w.handle(), ops::Const(body, 1));
        return std::vector{i[0] + 1};
      })[0];
  Session session(g, "", config());
  session.Run(ops::GlobalVariablesInitializer(g));
  const auto run = [&](int count, int64_t closure) {
    session.Run({{iterations, Tensor::Scalar(count)}}, {last}, {}, OfClosure(9, closure));
  };
  const auto values = [&] {
    const RunResults read = session.Run({v, w});
    return std::pair(read[0].scalar<int32_t>(), read[1].scalar<int32_t>());
  };
  run(2, 1);  // an attempt that ends early
  EXPECT_EQ(values(), std::pair(3, 2));
  run(4, 1);
  EXPECT_EQ(values(), std::pair(10, 4));
  run(4, 1);
  EXPECT_EQ(values(), std::pair(10, 4));
  run(1, 2);
  EXPECT_EQ(values(), std::pair(11, 5));
}

TEST_P(ClosureRunsTest, RandomOpsFollowFromTheNumberOfTheClosure) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output shape = ops::Const(g, std::vector<int32_t>{4});
  // Copies of two workers have equal seeds.
  const auto copy = [&] {
    const ops::SeedScope seeds(1234, 1);
    const Output outside = ops::RandomUniform(shape);
    const Output inside = ops::While(
        {ops::Const(g, 0), ops::Const(g, std::vector<float>{0, 0, 0, 0})},
        [&](Graph& body, const std::vector<Output>& v) { return std::vector{ops::Less(v[0], ops::Const(body, 2))}; },
        [&](Graph& body, const std::vector<Output>& v) {
          const Output dims = ops::Const(body, std::vector<int32_t>{4});
          return std::vector{v[0] + 1, v[1] * 2.0f + ops::RandomUniform(dims)};
        })[1];
    return std::vector{outside, inside};
  };
  const std::vector<Output> first = copy(), second = copy();
  Session session(g, "", config());
  const auto numbers = [&](const std::vector<Output>& values, int64_t closure) {
    std::vector<float> all;
    for (const Tensor& value : session.Run({}, values, {}, OfClosure(9, closure))) {
      const std::vector<float> own = value.ToVector<float>();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
  const std::vector<float> of_one = numbers(first, 1);
  EXPECT_NE(of_one[0], of_one[1]);
  EXPECT_EQ(numbers(second, 1), of_one);
  EXPECT_EQ(numbers(first, 1), of_one);
  const std::vector<float> of_two = numbers(first, 2);
  EXPECT_NE(of_two[0], of_one[0]);
  EXPECT_NE(of_two[4], of_one[4]);
  EXPECT_EQ(numbers(second, 2), of_two);
  EXPECT_NE(session.Run(first[0]).ToVector<float>(), session.Run(first[0]).ToVector<float>());
}

}  // namespace
}  // namespace cohort
