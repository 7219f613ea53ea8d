// Runs of closures: a task makes each update of a closure once, however often the closure runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
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

}  // namespace
}  // namespace cohort
