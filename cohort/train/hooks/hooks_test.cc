#include "cohort/train/hooks/hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/summary.h"
#include "cohort/registration.h"
#include "cohort/summary/event_reader.h"
#include "cohort/train/monitored_session.h"

namespace cohort::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A graph that counts: each run of `train` adds 1 to the global step and x to w.
struct CountingGraph {
  CountingGraph() {
    RegisterAll();
    step = ops::GetOrCreateGlobalStep(graph);
    w = ops::GetVariable(graph, "w", Shape{}, DType::kFloat32, initializers::Constant(0.0));
    x = ops::PlaceholderWithDefault(ops::Const(graph, 1.0f), Shape{}, "x");
    Node* add = w.AssignAdd(x);
    const ControlDependencies after(graph, {add});
    train = step.AssignAdd(1);
  }
  MonitoredSession Session(std::vector<std::shared_ptr<SessionRunHook>> hooks) {
    return MonitoredTrainingSession(graph, {.hooks = std::move(hooks)});
  }
  Graph graph;
  ops::Variable step, w;
  Output x;
  Node* train = nullptr;
};

TEST(StepTimerTest, TriggersByStepsOrByTime) {
  StepTimer by_steps({.steps = 10}, "owner");
  EXPECT_TRUE(by_steps.ShouldTrigger(3));
  EXPECT_FALSE(by_steps.Update(3).has_value());
  EXPECT_FALSE(by_steps.ShouldTrigger(3));
  EXPECT_FALSE(by_steps.ShouldTrigger(12));
  EXPECT_TRUE(by_steps.ShouldTrigger(13));
  EXPECT_EQ(by_steps.Update(14)->steps, 11);
  StepTimer by_time({.interval = std::chrono::hours(1)}, "owner");
  (void)by_time.Update(1);
  EXPECT_FALSE(by_time.ShouldTrigger(1'000'000));
  StepTimer soon({.interval = std::chrono::milliseconds(1)}, "owner");
  (void)soon.Update(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(soon.ShouldTrigger(1));  // the same step
  EXPECT_TRUE(soon.ShouldTrigger(2));
}

TEST(StepTimerTest, WantsExactlyOneOfTheTwo) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { StepTimer({}, "MyHook"); }),
              AllOf(HasSubstr("MyHook"), HasSubstr("none")));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([] { StepTimer({.steps = 1, .interval = std::chrono::seconds(1)}, "MyHook"); }),
      HasSubstr("both"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { StepTimer({.steps = 0}, "MyHook"); }), HasSubstr("got 0"));
}

TEST(StopAtStepHookTest, StopsAtTheLastStep) {
  CountingGraph model;
  MonitoredSession session = model.Session({std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.last_step = 5})});
  int runs = 0;
  while (!session.should_stop()) {
    session.Run(model.train);
    ++runs;
  }
  EXPECT_EQ(runs, 5);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { session.Run(model.train); }), HasSubstr("should_stop"));
  session.Close();
}

TEST(StopAtStepHookTest, CountsFromTheStepOfTheFirstSession) {
  const testing::TempFolder folder;
  for (const int expected : {3, 6}) {
    CountingGraph model;
    MonitoredSession session = MonitoredTrainingSession(
        model.graph, {.checkpoint_dir = folder.path(),
                      .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.num_steps = 3})}});
    session.RunUntilStop([&](MonitoredSession& s) { s.Run(model.train); });
    EXPECT_EQ(LatestCheckpoint(folder.path()), StrCat(folder.path(), "/model.ckpt-", expected));
  }
}

TEST(StopAtStepHookTest, WarnsOfAGlobalStepThatStandsStill) {
  CountingGraph model;
  MonitoredSession session = model.Session({std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.last_step = 5})});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 30; ++i) session.Run(model.w.value());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr("global_step"), HasSubstr("20 runs")));
}

TEST(StopAtStepHookTest, NeedsAGlobalStepAndOneOfTwoNumbers) {
  EXPECT_THROW(StopAtStepHook({}), InvalidArgumentError);
  EXPECT_THROW(StopAtStepHook({.num_steps = 1, .last_step = 2}), InvalidArgumentError);
  RegisterAll();
  Graph graph;
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                (void)MonitoredTrainingSession(
                    graph, {.hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.last_step = 5})}});
              }),
              AllOf(HasSubstr("StopAtStepHook"), HasSubstr("GetOrCreateGlobalStep")));
}

TEST(NanTensorHookTest, ThrowsOrStops) {
  {
    CountingGraph model;
    const Output loss = model.w.value() / model.w.value();
    MonitoredSession session = model.Session({std::make_shared<NanTensorHook>(loss)});
    EXPECT_THAT(MessageOf<NanLossDuringTrainingError>([&] { session.Run(model.train); }), HasSubstr(loss.name()));
  }
  CountingGraph model;
  const Output loss = ops::Log(model.w.value() - 2.5f);  // NaN while w < 2.5
  MonitoredSession session = model.Session({std::make_shared<NanTensorHook>(loss, /*fail_on_nan_loss=*/false)});
  session.Run(model.train);
  EXPECT_TRUE(session.should_stop());
  session.Close();
}

TEST(CheckpointSaverHookTest, SavesAtTheStartByStepsAndAtTheEnd) {
  struct Recording final : CheckpointSaverListener {
    void Begin(Graph&) override { calls.push_back("begin"); }
    void BeforeSave(Session&, int64_t step) override { calls.push_back(StrCat("before ", step)); }
    bool AfterSave(Session&, int64_t step) override {
      calls.push_back(StrCat("after ", step));
      return false;
    }
    void End(Session&, int64_t step) override { calls.push_back(StrCat("end ", step)); }
    std::vector<std::string> calls;
  };
  const testing::TempFolder folder;
  const auto listener = std::make_shared<Recording>();
  CountingGraph model;
  MonitoredSession session = model.Session({std::make_shared<CheckpointSaverHook>(
      CheckpointSaverHook::Options{.checkpoint_dir = folder.path(), .every = {.steps = 2}, .listeners = {listener}})});
  for (int i = 0; i < 5; ++i) session.Run(model.train);
  session.Close();
  EXPECT_THAT(listener->calls, ElementsAre("begin", "before 0", "after 0", "before 2", "after 2", "before 4", "after 4",
                                           "before 5", "after 5", "end 5"));
  EXPECT_EQ(LatestCheckpoint(folder.path()), folder.path() + "/model.ckpt-5");
  EXPECT_TRUE(std::filesystem::exists(folder / "graph.pbtxt"));
}

TEST(SummarySaverHookTest, WritesTheFirstRunAndEveryNthAlsoOfFedValues) {
  const testing::TempFolder folder;
  CountingGraph model;
  const Output fed = ops::Placeholder(model.graph, DType::kFloat32, Shape{}, "fed");
  ops::ScalarSummary("cost", fed);
  MonitoredSession session = MonitoredTrainingSession(
      model.graph, {.save_summaries_steps = 3, .log_step_count_steps = 4, .summary_dir = folder.path()});
  for (int i = 0; i < 8; ++i) session.Run({{fed, Tensor::Scalar(static_cast<float>(i))}}, {}, {model.train});
  session.Close();
  std::vector<std::string> seen;
  int rates = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EventReader reader(entry.path().string());
    Event event;
    while (reader.Read(&event) == RecordReader::Outcome::kRecord) {
      if (event.kind != Event::Kind::kSummary) continue;
      for (const auto& value : event.values) {
        if (value.tag == "cost") seen.push_back(StrCat(event.step, ": ", value.scalar));
        if (value.tag == "global_step/sec") ++rates;
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre("1: 0", "4: 3", "7: 6"));
  EXPECT_EQ(rates, 1);  // at step 5; step 1 starts the clock
}

TEST(LoggingTensorHookTest, LogsInTensorFlowsForm) {
  CountingGraph model;
  MonitoredSession session = model.Session({std::make_shared<LoggingTensorHook>(
      LoggingTensorHook::Values{{"loss", ops::Const(model.graph, 0.038075272f)}, {"two", ops::Const(model.graph, 2)}},
      LoggingTensorHook::Options{.every = {.steps = 2}})});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) session.Run(model.train);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("loss = 0.038075272, two = 2\n"));
  EXPECT_THAT(log, ::testing::ContainsRegex("loss = 0.038075272, two = 2 \\([0-9.]+ sec\\)\n"));
}

TEST(FeedFnHookTest, FeedsEachRunAndNamesBothFeeders) {
  CountingGraph model;
  float next = 10;
  MonitoredSession session = model.Session({std::make_shared<FeedFnHook>([&] {
    return FeedList{{model.x, Tensor::Scalar(next++)}};
  })});
  session.Run(model.train);
  session.Run(model.train);
  EXPECT_EQ(session.Run(model.w.value()).scalar<float>(), 21);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{model.x, Tensor::Scalar(1.0f)}}, {}, {model.train});
              }),
              AllOf(HasSubstr("x:0"), HasSubstr("the program"), HasSubstr("FeedFnHook")));
}

TEST(FinalOpsHookTest, KeepsTheLastValues) {
  CountingGraph model;
  const auto hook = std::make_shared<FinalOpsHook>(std::vector<Output>{model.w.value()});
  MonitoredSession session = model.Session({hook});
  for (int i = 0; i < 3; ++i) session.Run(model.train);
  EXPECT_TRUE(hook->final_ops_values().empty());
  session.Close();
  EXPECT_EQ(hook->final_ops_values().front().scalar<float>(), 3);
}

}  // namespace
}  // namespace cohort::train
