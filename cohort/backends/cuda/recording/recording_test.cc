// Recorded steps of a network: they compute what launched ones do, with other shapes, faults and other sessions beside.
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/testing/network.h"
#include "cohort/backends/cuda/testing/recording_fixture.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RecordedTraining : public RecordingTest, public ::testing::WithParamInterface<Rule> {};

TEST_P(RecordedTraining, HasTheBitsOfLaunchedSteps) {
  constexpr int kSteps = 20;
  std::vector<Tensor> losses[2], values[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(GetParam(), Config());
    network.Initialize();
    for (int i = 0; i < kSteps; ++i) {
      const Asked asked = AskedBy([&] { losses[recorded].push_back(network.Train(5, i)); });
      EXPECT_EQ(asked.graphs, recorded && i > 0 ? 1 : 0) << i;
      if (recorded && i > 1) {
        EXPECT_EQ(asked.launches, 0) << i;
      }
    }
    values[recorded] = network.Values();
  }
  ExpectSame(losses[1], losses[0]);
  ExpectSame(values[1], values[0]);
}

INSTANTIATE_TEST_SUITE_P(Rules, RecordedTraining, ::testing::Values(Rule::kDescent, Rule::kMomentum, Rule::kAdam),
                         [](const auto& info) {
                           return info.param == Rule::kDescent    ? "Descent"
                                  : info.param == Rule::kMomentum ? "Momentum"
                                                                  : "Adam";
                         });

// Feeds of other shapes never come from a graph that was made for these; each shape gets one.
TEST_F(RecordingTest, EachShapeOfTheFeedsHasItsOwnGraph) {
  constexpr int64_t kRows[] = {5, 3, 5, 3, 8, 5, 3, 8, 8, 5};
  std::vector<Tensor> losses[2], values[2];
  std::vector<int64_t> graphs;
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kDescent, Config());
    network.Initialize();
    int64_t seed = 0;
    for (const int64_t rows : kRows) {
      const Asked asked = AskedBy([&] { losses[recorded].push_back(network.Train(rows, ++seed)); });
      if (recorded) graphs.push_back(asked.graphs);
    }
    values[recorded] = network.Values();
  }
  EXPECT_THAT(graphs, ElementsAre(0, 0, 1, 1, 0, 1, 1, 1, 1, 1));
  ExpectSame(losses[1], losses[0]);
  ExpectSame(values[1], values[0]);
}

TEST_F(RecordingTest, TheGraphThatWasUsedLeastRecentlyGoesFirst) {
  constexpr int64_t kMost = 8;
  Network network(Rule::kDescent, Config());
  network.Initialize();
  const auto graphs = [&](int64_t rows) { return AskedBy([&] { network.Train(rows, 1); }).graphs; };
  for (int64_t rows = 1; rows <= kMost; ++rows) {
    EXPECT_EQ(graphs(rows), 0);
    EXPECT_EQ(graphs(rows), 1);
  }
  EXPECT_EQ(graphs(1), 1);  // the oldest is now that of 2 rows
  EXPECT_EQ(graphs(kMost + 1), 0);
  EXPECT_EQ(graphs(1), 1);
  EXPECT_EQ(graphs(3), 1);
  EXPECT_EQ(graphs(2), 0);
}

// Many shapes at first make recordings rarer. A few shapes afterwards are recorded nevertheless.
TEST_F(RecordingTest, AfterManyShapesOneThatComesOftenIsRecorded) {
  Network network(Rule::kDescent, Config());
  network.Initialize();
  const auto graphs = [&](int64_t rows) { return AskedBy([&] { network.Train(rows, 1); }).graphs; };
  int64_t rows = 0;
  while (++rows <= 16) {
    EXPECT_EQ(graphs(rows), 0);
    EXPECT_EQ(graphs(rows), 1);
  }
  ::testing::internal::CaptureStderr();
  for (const int64_t expected : {0, 0, 1, 1}) EXPECT_EQ(graphs(rows), expected);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("are recorded from now on when 2 of the same shapes have been launched"),
                         HasSubstr("16 recordings served only 16 steps")));
  // 15 more make it rarer still.
  while (++rows <= 32) {
    for (const int64_t expected : {0, 0, 1}) EXPECT_EQ(graphs(rows), expected);
  }
  for (const int64_t expected : {0, 0, 0, 0, 1, 1}) EXPECT_EQ(graphs(rows), expected);
}

// Steps that are launched, recorded and replayed, initial values, fetches and reads: none of these copies waits for the
// card, because the host's side of each is pinned.
TEST_F(RecordingTest, FeedsAndFetchesGoThroughPinnedMemory) {
  const int64_t pageable = counts_->pageable_copies(), to_host = counts_->bytes_to_host();
  const int64_t from_host = counts_->bytes_from_host();
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kAdam, Config());
    network.Initialize();
    for (int i = 0; i < 5; ++i) network.Train(100, i);
    network.Values();
  }
  EXPECT_GT(counts_->bytes_to_host(), to_host);
  EXPECT_GT(counts_->bytes_from_host(), from_host);
  EXPECT_EQ(counts_->pageable_copies(), pageable);
}

TEST_F(RecordingTest, FetchedValuesStayAsTheyWere) {
  Network network(Rule::kDescent, Config());
  network.Initialize();
  std::vector<Tensor> losses;
  std::vector<float> copies;
  for (int i = 0; i < 10; ++i) {
    losses.push_back(network.Train(4, i));
    copies.push_back(losses.back().scalar<float>());
  }
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(losses[i].scalar<float>(), copies[i]);
  EXPECT_NE(copies[8], copies[9]);
}

// Training and evaluation take turns; their graphs share memory.
TEST_F(RecordingTest, SeveralPlansTakeTurns) {
  std::vector<Tensor> results[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kMomentum, Config());
    network.Initialize();
    for (int i = 0; i < 12; ++i) {
      results[recorded].push_back(network.Train(7, i));
      const int64_t rows = 3 + 10 * (i % 2);
      results[recorded].push_back(network.session->Run(network.Feeds(rows, i), {network.loss})[0]);
      if (i % 3 == 0) {
        for (const Tensor& value : network.Values()) results[recorded].push_back(value);
      }
    }
  }
  ExpectSame(results[1], results[0]);
}

// An assignment copies into the variable's memory, so the graph stays.
TEST_F(RecordingTest, AssignedValuesAreSeenByTheGraph) {
  std::vector<Tensor> losses[2], values[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kAdam, Config());
    network.Initialize();
    const Output fed = ops::Placeholder(network.graph_, DType::kFloat32, Shape{-1, -1}, "fed");
    Node* const assign = network.variables[0].Assign(fed, "assign");
    for (int i = 0; i < 9; ++i) {
      const Asked asked = AskedBy([&] { losses[recorded].push_back(network.Train(5, i)); });
      EXPECT_EQ(asked.graphs, recorded && i > 0 ? 1 : 0) << i;
      if (i % 3 == 1) {
        network.session->Run({{fed, SeededNoise(Shape{Network::kInputs, Network::kHidden}, 50 + i)}}, {}, {assign});
      }
      if (i == 5) network.session->Run(ops::GlobalVariablesInitializer(network.graph_));
    }
    values[recorded] = network.Values();
  }
  ExpectSame(losses[1], losses[0]);
  ExpectSame(values[1], values[0]);
}

// Somebody who holds a value makes the next update go to another place. The graph is made again then.
TEST_F(RecordingTest, AVariableThatHasMovedIsFoundAgain) {
  std::vector<Tensor> results[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const ops::Variable v(g, Tensor::Vector<float>({1, 2}), {.name = "v"});
    Node* const add = v.AssignAdd(ops::Const(g, std::vector<float>{1, 10}), "add");
    const Output old = v.Read();  // wanted again after the update, which therefore has to write elsewhere
    Output changed;
    {
      const ControlDependencies before(g, {old.node});
      Node* const once = v.AssignAdd(ops::Const(g, std::vector<float>{100, 100}), "once");
      const ControlDependencies after(g, {once});
      changed = old * 2.0f;
    }
    Session session(g, "", Config());
    session.Run(v.initializer());
    for (int i = 0; i < 12; ++i) {
      const Asked asked = AskedBy([&] { session.Run({}, {}, {add}); });
      if (recorded && i > 0) {
        EXPECT_EQ(asked.graphs, 1) << i;
      }
      if (i == 4 || i == 7) results[recorded].push_back(session.Run(changed));
    }
    results[recorded].push_back(session.Run(v.Read()));
  }
  ExpectSame(results[1], results[0]);
  EXPECT_THAT(results[1].back().ToVector<float>(), ElementsAre(213, 322));
}

// The error is that of a step that is launched, and no update of the step is applied.
TEST_F(RecordingTest, ABadLabelFailsTheStepWithTheErrorOfALaunchedOne) {
  std::string messages[2];
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kMomentum, Config());
    network.Initialize();
    for (int i = 0; i < 3; ++i) network.Train(5, i);
    const std::vector<Tensor> before = network.Values();
    FeedList feeds = network.Feeds(5, 3);
    feeds[1].second = Tensor::Vector<int64_t>({0, 1, 9, 2, 3});
    const Asked asked = AskedBy([&] {
      messages[recorded] =
          MessageOf<InvalidArgumentError>([&] { network.session->Run(feeds, {network.loss}, {network.step}); });
    });
    EXPECT_EQ(asked.graphs, recorded ? 1 : 0);
    ExpectSame(network.Values(), before);
    const Asked next = AskedBy([&] { network.Train(5, 4); });
    EXPECT_EQ(next.graphs, recorded ? 1 : 0);
    EXPECT_FALSE(SameBits(network.Values()[0], before[0]));
  }
  EXPECT_THAT(messages[1], AllOf(HasSubstr("label value of 9"), HasSubstr("labels[2]"), HasSubstr("GPU:0")));
  EXPECT_EQ(messages[1], messages[0]);
}

TEST_F(RecordingTest, ABadRowOfAVariableFailsTheStep) {
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output indices = ops::Placeholder(g, DType::kInt32, Shape{-1}, "indices");
  const ops::Variable table(g, Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2}), {.name = "table"});
  const ops::Variable count(g, Tensor::Scalar(0.0f), {.name = "count"});
  const Output rows = table.Gather(indices, "rows");
  Node* const scatter = ops::ResourceScatterAdd(table.handle(), indices, rows, "scatter");
  Node* const add = count.AssignAdd(ops::Const(g, 1.0f), "add");
  Session session(g, "", Config());
  session.Run(ops::GlobalVariablesInitializer(g));
  const auto run = [&](std::vector<int32_t> at) {
    return session.Run({{indices, Tensor::Vector<int32_t>(at)}}, {rows}, {scatter, add})[0].ToVector<float>();
  };
  run({0, 1});
  run({0, 2});
  EXPECT_THAT(run({2, 1}), ElementsAre(10, 12, 6, 8));
  std::string message;
  const Asked asked = AskedBy([&] { message = MessageOf<InvalidArgumentError>([&] { run({1, 3}); }); });
  EXPECT_EQ(asked.graphs, 1);
  EXPECT_THAT(message, AllOf(HasSubstr("indices[1] = 3"), HasSubstr("rows")));
  EXPECT_THAT(run({0, 2}), ElementsAre(4, 8, 20, 24));
  EXPECT_EQ(session.Run(count.Read()).scalar<float>(), 4.0f);
}

// A capture that the driver refuses in the middle: the step is launched, and the next one is recorded, because another
// thread may have made the call that was refused. The third refusal in a row is the last.
TEST_F(RecordingTest, ACaptureThatBecomesInvalidIsTriedThreeTimes) {
  COHORT_NEEDS_FAKE("it refuses a call of the capture");
  std::vector<Tensor> losses[4], values[4];
  for (const int refused : {0, 1, 3}) {
    Network network(Rule::kDescent, Config());
    network.Initialize();
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 6; ++i) {
      if (i >= 1 && i <= refused) control().FailCapture(8);  // a kernel
      const Asked asked = AskedBy([&] { losses[refused].push_back(network.Train(5, i)); });
      EXPECT_EQ(asked.graphs, i > refused && refused < 3 ? 1 : 0) << refused << " " << i;
    }
    const std::string log = ::testing::internal::GetCapturedStderr();
    if (refused < 3) {
      EXPECT_THAT(log, Not(HasSubstr("are not recorded")));
    } else {
      // The first error says what was refused. The one at the end of the capture only says that there was another.
      EXPECT_THAT(log, AllOf(HasSubstr("are not recorded, because"), HasSubstr("work that the test refuses"),
                             HasSubstr("not permitted when stream is capturing"), Not(HasSubstr("previous error"))));
    }
    values[refused] = network.Values();
    ExpectSame(losses[refused], losses[0]);
    ExpectSame(values[refused], values[0]);
  }
}

// An op that passes its input on. Its kernel first asks the card for memory, which makes a capture invalid.
std::atomic<int> refused_calls{0};
const bool kAsksForMemoryIsRegistered = [] {
  OpRegistry::Global().Register(
      OpDef("RecordingAsksForMemory").Input("x: float32").Output("y: float32").ShapeRule([](ShapeContext& c) {
        return std::vector<Shape>{c.input(0)};
      }));
  KernelRegistry::Global().RegisterFn("RecordingAsksForMemory", "GPU", [](KernelContext& ctx) {
    CudaDevice& device = CudaDeviceOf(ctx);
    try {
      if (void* data = device.driver().Allocate(device.card(), 256)) device.driver().Free(device.card(), data);
    } catch (const Error&) {
      ++refused_calls;
    }
    ctx.SetOutput(0, ctx.input(0));
  });
  return true;
}();

// The kernel keeps the refusal to itself, so the step learns only at the end of the capture that it is invalid.
TEST_F(RecordingTest, ACallThatMakesACaptureInvalidLetsTheStepBeLaunched) {
  ASSERT_TRUE(kAsksForMemoryIsRegistered);
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{2}, "x");
  const ops::Variable sum(g, Tensor::Vector<float>({0, 0}), {.name = "sum"});
  const Output passed = g.Op("RecordingAsksForMemory").Input(x * 2.0f).Finish1();
  Node* const add = sum.AssignAdd(passed + 1.0f, "add");
  Session session(g, "", Config());
  session.Run(sum.initializer());
  const auto step = [&] { session.Run({{x, Tensor::Vector<float>({1, 10})}}, {}, {add}); };
  step();
  EXPECT_EQ(refused_calls, 0);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) step();  // so many attempts
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("are not recorded, because"), HasSubstr("add")));
  const int refused = refused_calls;
  EXPECT_GT(refused, 0);
  EXPECT_EQ(AskedBy([&] {
              for (int i = 0; i < 3; ++i) step();
            }).graphs,
            0);
  EXPECT_EQ(refused_calls, refused) << "there is no fourth attempt";
  EXPECT_THAT(session.Run(sum.Read()).ToVector<float>(), ElementsAre(21, 147));
}

// The first attempt does not know how much memory the step needs. Its work is thrown away.
TEST_F(RecordingTest, AnAttemptThatFailsMakesNoGraph) {
  COHORT_NEEDS_FAKE("it counts the graphs that it makes");
  Network network(Rule::kDescent, Config());
  network.Initialize();
  (void)network.Train(5, 0);
  const int64_t before = control().graphs_made();
  EXPECT_EQ(AskedBy([&] { (void)network.Train(5, 1); }).graphs, 1);
  EXPECT_EQ(control().graphs_made(), before + 1);
}

TEST_F(RecordingTest, WithoutMemoryForTheGraphTheStepIsLaunched) {
  COHORT_NEEDS_FAKE("it has no memory when the test says so");
  constexpr int kSteps = 6;
  std::vector<Tensor> losses[2];
  std::string log;
  for (const bool recorded : {false, true}) {
    config::EnableStepRecording(recorded);
    Network network(Rule::kDescent, Config());
    network.Initialize();
    losses[recorded].push_back(network.Train(5, 0));
    if (recorded) {
      control().FailAllocation(1, 1000);
      ::testing::internal::CaptureStderr();
    }
    for (int i = 1; i < kSteps; ++i) {
      EXPECT_EQ(AskedBy([&] { losses[recorded].push_back(network.Train(5, i)); }).graphs, 0) << i;
    }
    if (recorded) log = ::testing::internal::GetCapturedStderr();
    control().FailAllocation(0, 0);
  }
  EXPECT_THAT(log, AllOf(HasSubstr("are not recorded, because"), HasSubstr("[cuda memory] expected 2 MB")));
  ExpectSame(losses[1], losses[0]);
}

TEST_F(RecordingTest, ConcurrentStepsOfAPlanTakeTurns) {
  constexpr int kThreads = 4, kSteps = 15;
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{2}, "x");
  const ops::Variable sum(g, Tensor::Vector<float>({0, 0}), {.name = "sum"});
  Node* const add = sum.AssignAdd(x, "add");
  const Output square = x * x;
  Session session(g, "", Config());
  session.Run(sum.initializer());
  const Asked asked = AskedBy([&] {
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < kSteps; ++i) {
          const auto value = static_cast<float>(t * kSteps + i);
          if (i % 2 == 0) {
            session.Run({{x, Tensor::Vector<float>({value, 1})}}, {}, {add});
          } else {
            const RunResults results = session.Run({{x, Tensor::Vector<float>({value, 1})}}, {square}, {add});
            EXPECT_EQ(results[0].data<float>()[0], value * value);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  constexpr float kAll = kThreads * kSteps;
  EXPECT_THAT(session.Run(sum.Read()).ToVector<float>(), ElementsAre(kAll * (kAll - 1) / 2, kAll));
  EXPECT_GT(asked.graphs, 0);
}

// What is enqueued is applied as a whole; what waits for its turn is not.
TEST_F(RecordingTest, CancelledStepsAreAppliedAsAWholeOrNotAtAll) {
  COHORT_NEEDS_FAKE("its card stands still while the test cancels");
  Graph g;
  const DeviceScope scope(g, "/device:GPU:0");
  const ops::Variable a(g, Tensor::Scalar(0.0f), {.name = "a"}), b(g, Tensor::Scalar(0.0f), {.name = "b"});
  Node* const add_a = a.AssignAdd(ops::Const(g, 1.0f), "add_a");
  Node* const add_b = b.AssignAdd(ops::Const(g, 1.0f), "add_b");
  Session session(g, "", Config());
  session.Run(ops::GlobalVariablesInitializer(g));
  for (int i = 0; i < 3; ++i) session.Run({}, {}, {add_a, add_b});
  constexpr int kStarted = 4;
  std::latch ended(kStarted);
  control().Hold(0);
  for (int i = 0; i < kStarted; ++i) {
    session.RunAsync({{}, {}, {add_a, add_b}, {}}, [&](const Status&, const RunResults&) { ended.count_down(); });
  }
  session.CancelRuns(Status(Code::kCancelled, "the test wants it"));
  control().Release(0);
  ended.wait();
  const RunResults values = session.Run({a.Read(), b.Read()});
  EXPECT_EQ(values[0].scalar<float>(), values[1].scalar<float>());
  EXPECT_LE(values[0].scalar<float>(), 4.0f);
  session.Run({}, {}, {add_a, add_b});
  EXPECT_EQ(session.Run(a.Read()).scalar<float>(), values[0].scalar<float>() + 1);
}

// A trace shows each node.
TEST_F(RecordingTest, TracedStepsAreLaunched) {
  Network network(Rule::kDescent, Config());
  network.Initialize();
  for (int i = 0; i < 3; ++i) network.Train(5, i);
  RunOptions options;
  options.trace_level = TraceLevel::kFullTrace;
  const Asked asked = AskedBy([&] {
    const RunResults results = network.session->Run(network.Feeds(5, 3), {network.loss}, {network.step}, options);
    EXPECT_NE(results.shared_run_metadata(), nullptr);
  });
  EXPECT_EQ(asked.graphs, 0);
  EXPECT_EQ(AskedBy([&] { network.Train(5, 4); }).graphs, 1);
}

}  // namespace
}  // namespace cohort::cuda
