#include "cohort/runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Passes its input on; one is made for each plan that is compiled.
struct CountsPlans final : OpKernel {
  explicit CountsPlans(const KernelConstruction&) { made.fetch_add(1); }
  void Compute(KernelContext& ctx) override { ctx.SetOutput(0, ctx.input(0)); }
  static inline std::atomic<int> made{0};
};

const bool kSessionOpsRegistered = [] {
  testing::RegisterForDeviceKinds();
  OpRegistry::Global().Register(
      OpDef("CountsPlans").Input("x: float32").Output("y: float32").ShapeRule([](ShapeContext& c) {
        return std::vector<Shape>{c.input(0)};
      }));
  KernelRegistry::Global().Register<CountsPlans>("CountsPlans", "CPU");
  testing::RegisterKernelsForDeviceKinds();
  return true;
}();

class SessionTest : public testing::DeviceKindTest {
 protected:
  // Returns how many products make a step that is late. A fake card takes fewer: it is slow, and it runs what stands on
  // its stream to the end.
  static int LongStep(int products, int of_fake_card) {
    return GetParam() == std::string("GPU") && !cuda::TestsRunOnCard() ? of_fake_card : products;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SessionTest, testing::AllDeviceKinds(), testing::DeviceKindName);

TEST_P(SessionTest, FeedsAndFetches) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
  const Output y = x * 2.0f + 1.0f;
  Session session(g, "", config());
  const auto result = session.Run({{x, Tensor::Vector<float>({1, 2, 3})}}, {y, x});
  EXPECT_EQ(result[0].ToVector<float>(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(result[1].ToVector<float>(), (std::vector<float>{1, 2, 3}));
}

TEST_P(SessionTest, TellsOnceOfNodesThatAreAddedBetweenRuns) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1}, "x");
  Session session(g, "", config());
  const FeedList feeds = {{x, Tensor::Vector<float>({1, 2, 3})}};
  const auto run = [&](const Output& y) { session.Run(feeds, {y}); };
  const auto log_of = [](const std::function<void()>& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  };
  // The first run finds the graph as it is. A new run of what is there already ends the series.
  const Output square = ops::Square(x), root = ops::Sqrt(x);
  const std::string quiet = log_of([&] {
    for (int i = 0; i < 20; ++i) run(ops::Exp(x));
    run(square);
    run(root);
    for (int i = 0; i < 19; ++i) {
      run(ops::Neg(x));
      run(root);
    }
  });
  EXPECT_EQ(quiet.find("were added"), std::string::npos) << quiet;
  const int before = g.num_nodes() - 19;
  const std::string log = log_of([&] {
    for (int i = 0; i < 30; ++i) run(ops::Square(x));
  });
  EXPECT_THAT(log,
              HasSubstr(StrCat("W [session] nodes were added to the graph before each of the latest 20 new runs: it "
                               "has ",
                               before + 20, " nodes, 20 more than before them, the latest is Square node")));
  EXPECT_EQ(log.find("were added"), log.rfind("were added")) << log;
}

TEST_P(SessionTest, AFedIntermediateValueCutsItsInputsOff) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{});
  const Output middle = x + 1.0f;
  const Output y = middle * 10.0f;
  Session session(g, "", config());
  EXPECT_EQ(session.Run({{middle, Tensor::Scalar(4.0f)}}, {y})[0].scalar<float>(), 40.0f);
}

TEST_P(SessionTest, WhatRunsAfterAFedNodeRunsAfterTheFeed) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape(), "x");
  const ControlDependencies after(g, {x.node});
  const Output y = ops::Const(g, 2.0f) + 1.0f;
  Session session(g, "", config());
  EXPECT_EQ(session.Run({{x, Tensor::Scalar(1.0f)}}, {y})[0].scalar<float>(), 3.0f);
  EXPECT_THROW(session.Run(y), InvalidArgumentError);
}

TEST_P(SessionTest, TheCallersFeedIsNeverWrittenInto) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1});
  const Output y = x + 1.0f;
  Session session(g, "", config());
  const Tensor feed = Tensor::Vector<float>({1, 2});
  session.Run({{x, feed}}, {y});
  EXPECT_EQ(feed.ToVector<float>(), (std::vector<float>{1, 2}));
}

TEST_P(SessionTest, MistakesAreNamed) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, 3}, "x");
  const Output y = x * 2.0f;
  Graph other;
  const Output stranger = ops::Const(other, 1.0f);
  Session session(g, "", config());
  EXPECT_THAT(ErrorOf([&] { session.Run({}, {y}); }), HasSubstr("placeholder"));
  EXPECT_THAT(ErrorOf([&] { session.Run({}, {y}); }), HasSubstr("'x'"));
  const std::string shape = ErrorOf([&] { session.Run({{x, Tensor::Vector<float>({1})}}, {y}); });
  EXPECT_THAT(shape, HasSubstr("[?,3]"));
  EXPECT_THAT(shape, HasSubstr("[1]"));
  EXPECT_THAT(ErrorOf([&] { session.Run({{x, Tensor::Vector<int32_t>({1})}}, {y}); }), HasSubstr("int32"));
  EXPECT_THAT(ErrorOf([&] { session.Run({stranger}); }), HasSubstr("another graph"));
  const Tensor row = Tensor::FromValues<float>({1, 2, 3}, Shape{1, 3});
  EXPECT_THAT(ErrorOf([&] { session.Run({{x, row}, {x, row}}, {y}); }), HasSubstr("fed twice"));
}

TEST_P(SessionTest, AKernelsErrorNamesNodeOpDeviceAndShapes) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output a = ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank(), "a");
  const Output b = ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank(), "b");
  const Output product = ops::MatMul(a, b);
  Session session(g, "", config());
  const std::string message = ErrorOf([&] {
    session.Run({{a, Tensor::Zeros(DType::kFloat32, Shape{2, 3})}, {b, Tensor::Zeros(DType::kFloat32, Shape{4, 5})}},
                {product});
  });
  EXPECT_THAT(message, HasSubstr("InvalidArgument"));
  EXPECT_THAT(message, HasSubstr("MatMul"));
  EXPECT_THAT(message, HasSubstr("[2,3]"));
  EXPECT_THAT(message, HasSubstr("[4,5]"));
  EXPECT_THAT(message, HasSubstr(device()));
}

TEST_P(SessionTest, VariablesKeepTheirValueBetweenSteps) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, ops::Const(g, 1.0f), {.name = "v"});
  Node* add = v.AssignAdd(ops::Const(g, 2.0f));
  Session session(g, "", config());
  EXPECT_THAT(ErrorOf([&] { session.Run(v.value()); }), HasSubstr("uninitialized value v"));
  session.Run(ops::GlobalVariablesInitializer(g));
  for (int i = 0; i < 3; ++i) session.Run(add);
  EXPECT_EQ(session.Run(v.value()).scalar<float>(), 7.0f);
}

TEST_P(SessionTest, SessionsWithoutATargetShareNothing) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, ops::Const(g, 1.0f), {.name = "v"});
  Node* init = ops::GlobalVariablesInitializer(g);
  Session first(g, "", config());
  first.Run(init);
  Session second(g, "", config());
  EXPECT_THAT(ErrorOf([&] { second.Run(v.value()); }), HasSubstr("FailedPrecondition"));
}

TEST_P(SessionTest, SeveralDevicesExchangeValues) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  Output x;
  Output y;
  Output z;
  {
    const DeviceScope scope(g, device(0));
    x = ops::Placeholder(g, DType::kFloat32, Shape{-1});
  }
  {
    const DeviceScope scope(g, device(1));
    y = x * 3.0f;
  }
  {
    const DeviceScope scope(g, device(0));
    z = y + x;
  }
  Session session(g, "", config(2));
  EXPECT_EQ(session.ListDevices().size(), is_cpu() ? 2u : 3u);
  for (int i = 0; i < 200; ++i) {
    const float value = static_cast<float>(i);
    EXPECT_EQ(session.Run({{x, Tensor::Vector<float>({value})}}, {z})[0].data<float>()[0], 4 * value);
  }
  EXPECT_THAT(ErrorOf([&] {
                Session one(g, "", config(1));
                one.Run({{x, Tensor::Vector<float>({1})}}, {z});
              }),
              HasSubstr(std::string(GetParam()) + ":1"));
}

// Values go back and forth between a device and CPU:0, which shares the host's memory.
TEST_P(SessionTest, ADeviceAndTheHostExchangeValues) {
  testing::GraphOnDevice on(device(is_cpu() ? 1 : 0));
  Graph& g = on.graph;
  const ops::Variable v(g, ops::Const(g, std::vector<float>{1, 2}), {.name = "v"});
  Output x;
  Output shape;
  Output there;
  {
    const DeviceScope scope(g, "/device:CPU:0");
    x = ops::Placeholder(g, DType::kFloat32, Shape{-1});
    shape = ops::ShapeOf(x);  // host memory here and there
    there = x * 2.0f;
  }
  const Output here = ops::Fill(shape, ops::Const(g, 1.0f)) + there * v.value();
  Node* update = v.AssignSub(ops::Relu(here) * 0.5f);
  Output back;
  {
    const DeviceScope scope(g, "/device:CPU:0");
    back = here + x;
  }
  Session session(g, "", config(2));
  session.Run(ops::GlobalVariablesInitializer(g));
  std::vector<float> value = {1, 2};
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> feed = {static_cast<float>(i % 5), -1};
    const auto result = session.Run({{x, Tensor::Vector(feed)}}, {back}, {update})[0].ToVector<float>();
    for (size_t k = 0; k < 2; ++k) {
      const float middle = 1 + 2 * feed[k] * value[k];
      EXPECT_EQ(result[k], middle + feed[k]);
      value[k] -= std::max(0.0f, middle) * 0.5f;
    }
    EXPECT_EQ(session.Run(v.value()).ToVector<float>(), value);
  }
}

// A step that is too late ends soon after its deadline, however much is still to come.
TEST_P(SessionTest, ALateStepDoesNotRunToItsEnd) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, 256});
  Output y = x;
  for (int i = 0; i < LongStep(4000, 60); ++i) y = ops::MatMul(y, x);  // seconds, on any device
  Session session(g, "", config());
  const Tensor feed = Tensor::Zeros(DType::kFloat32, Shape{256, 256});
  EXPECT_THAT(ErrorOf([&] {
                session.Run({{x, feed}}, {y}, {}, {.timeout = std::chrono::milliseconds(1)});
              }),
              HasSubstr("DeadlineExceeded"));
  EXPECT_EQ(session.Run({{x, feed}}, {x * 2.0f})[0].shape(), (Shape{256, 256}));
}

TEST_P(SessionTest, ThreadsRunStepsAtOnce) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const ops::Variable v(g, ops::Const(g, int64_t{0}), {.name = "count"});
  Node* add = v.AssignAdd(ops::Const(g, int64_t{1}));
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{});
  const Output y = x * x;
  Session session(g, "", config());
  session.Run(ops::GlobalVariablesInitializer(g));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const float value = static_cast<float>(t * 1000 + i);
        EXPECT_EQ(session.Run({{x, Tensor::Scalar(value)}}, {y}, {add})[0].scalar<float>(), value * value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(session.Run(v.value()).scalar<int64_t>(), 2000);
}

TEST_P(SessionTest, ANewRowCountEachStep) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, 4});
  const ops::Variable w(g, ops::Fill(ops::Const(g, std::vector<int32_t>{4, 2}), ops::Const(g, 0.5f)));
  const ops::Variable b(g, ops::Const(g, std::vector<float>{0, 0}));
  const Output dense = ops::Relu(ops::BiasAdd(ops::MatMul(x, w.value()), b.value()));  // fused into one
  const Output y = ops::Sum(g.Op("CountsPlans").Input(dense).Finish1());
  Session session(g, "", config());
  session.Run(ops::GlobalVariablesInitializer(g));
  CountsPlans::made = 0;
  for (int64_t rows = 0; rows < (is_cpu() ? 10000 : 500); ++rows) {
    const int64_t n = (rows * 37) % 10007;  // another one each step
    const Tensor feed = Tensor::FromValues(std::vector<float>(static_cast<size_t>(n * 4), 1.0f), Shape{n, 4});
    ASSERT_EQ(session.Run({{x, feed}}, {y})[0].scalar<float>(), static_cast<float>(n * 4));
  }
  EXPECT_EQ(CountsPlans::made, 1);
}

TEST_P(SessionTest, ACallableIsTheSignatureResolvedOnce) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{});
  const Output y = x + 1.0f;
  Session session(g, "", config());
  const Callable add = session.MakeCallable({x}, {y});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(add({Tensor::Scalar(float(i))})[0].scalar<float>(), float(i + 1));
  EXPECT_THAT(ErrorOf([&] { add({}); }), HasSubstr("1 feeds"));
}

TEST_P(SessionTest, AClosedSessionSaysSo) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Const(g, 1.0f);
  Session session(g, "", config());
  session.Close();
  EXPECT_THAT(ErrorOf([&] { session.Run(x); }), HasSubstr("closed"));
}

TEST_P(SessionTest, ClosingEndsStepsThatRunOnTheirCallersThreads) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{64, 64});
  Output y = x;
  for (int i = 0; i < 2000; ++i) y = ops::MatMul(y, x);  // would take long
  const Output z = x + 1.0f;
  Session session(g, "", config());
  const Tensor feed = Tensor::Zeros(DType::kFloat32, Shape{64, 64});
  session.Run({{x, feed}}, {z});
  std::vector<std::thread> threads;
  std::vector<std::string> ends(3);
  std::atomic<int> begun{0};
  for (size_t t = 0; t < ends.size(); ++t) {
    threads.emplace_back([&, t] {
      ends[t] = ErrorOf([&] {
        for (;;) {
          ++begun;
          session.Run({{x, feed}}, {t == 0 ? z : y});
        }
      });
    });
  }
  while (begun.load() < 4) std::this_thread::yield();
  session.Close();
  for (std::thread& thread : threads) thread.join();
  for (const std::string& end : ends) EXPECT_THAT(end, HasSubstr("closed"));
}

TEST_P(SessionTest, AStepThatOnlyComputesEndsAtItsTimeLimit) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{256, 256});
  Output y = x;
  for (int i = 0; i < LongStep(4000, 60); ++i) y = ops::MatMul(y, x);  // seconds, on any device
  Session session(g, "", config());
  const FeedList feed = {{x, Tensor::Zeros(DType::kFloat32, Shape{256, 256})}};
  EXPECT_THAT(ErrorOf([&] { session.Run(feed, {y}, {}, {.timeout = std::chrono::milliseconds(1)}); }),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("did not end within 1 ms")));
  EXPECT_EQ(session.Run(feed, {x})[0].num_elements(), 256 * 256);
}

// Once a process: whichever of the two kinds of device this test runs on first sees it.
TEST_P(SessionTest, AFieldThatHasNoEffectIsWarnedOfOnce) {
  static bool warned = false;
  testing::GraphOnDevice on(device());
  SessionConfig config = this->config();
  config.inter_op_parallelism_threads = 4;  // as guides set it
  ::testing::internal::CaptureStderr();
  const Session first(on.graph, "", config), second(on.graph, "", config);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t at = log.find("inter_op_parallelism_threads = 4 has no effect");
  EXPECT_EQ(at != std::string::npos, !warned) << log;
  EXPECT_EQ(log.find("has no effect", at == std::string::npos ? 0 : at + 40), std::string::npos) << log;
  warned = true;
}

TEST_P(SessionTest, AStepWithATimeLimitGivesTheSame) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1});
  const Output y = x * 2.0f;
  const Output z = y + 1.0f;
  Session session(g, "", config());
  const FeedList feed = {{x, Tensor::Vector<float>({1, 2})}};
  using Ms = std::chrono::milliseconds;
  for (const Ms timeout : {Ms(0), Ms(60'000), Ms::max()}) {
    const std::vector<Tensor> results = session.Run(feed, {z, y, z, x}, {}, {timeout});
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(results[0].ToVector<float>(), (std::vector<float>{3, 5}));
    EXPECT_EQ(results[1].ToVector<float>(), (std::vector<float>{2, 4}));
    EXPECT_EQ(results[2].ToVector<float>(), (std::vector<float>{3, 5}));
    EXPECT_EQ(results[3].ToVector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(session.Run(feed, {y}, {}, {timeout})[0].ToVector<float>(), (std::vector<float>{2, 4}));
  }
}

TEST_P(SessionTest, TargetsOfOtherKindsAreRefused) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  EXPECT_THAT(ErrorOf([&] { Session session(g, "http://127.0.0.1:1"); }), HasSubstr("NotFound"));
}

}  // namespace
}  // namespace cohort
