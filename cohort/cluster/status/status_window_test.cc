#include "cohort/cluster/status/status_window.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

using std::chrono::milliseconds;

const auto kBegin = std::chrono::steady_clock::time_point() + std::chrono::hours(1);

RunningOperation Runs(const std::string& op) { return {.op = op, .thread = 12}; }
RunningOperation Waits(const std::string& op, WaitKind kind) { return {.op = op, .wait = kind}; }
RunningStep StepOf(const std::vector<RunningOperation>& operations) {
  RunningStep step;
  step.operations = operations;
  return step;
}

TEST(StatusWindowTest, WhatStepsDo) {
  EXPECT_EQ(UseOf({}), StepUse::kNone);
  EXPECT_EQ(UseOf({StepOf({})}), StepUse::kCompute);
  EXPECT_EQ(UseOf({StepOf({Runs("MatMul")})}), StepUse::kCompute);
  EXPECT_EQ(UseOf({StepOf({Runs("IteratorGetNext")})}), StepUse::kData);
  EXPECT_EQ(UseOf({StepOf({Waits("IteratorGetNext", WaitKind::kWork)})}), StepUse::kData);
  EXPECT_EQ(UseOf({StepOf({Waits("_Recv", WaitKind::kValue)})}), StepUse::kWait);
  EXPECT_EQ(UseOf({StepOf({Waits("QueueDequeueV2", WaitKind::kOtherSteps)})}), StepUse::kWait);
  // The most useful of several counts.
  EXPECT_EQ(UseOf({StepOf({Waits("_Recv", WaitKind::kValue), Runs("MatMul")})}), StepUse::kCompute);
  EXPECT_EQ(UseOf({StepOf({Waits("_Recv", WaitKind::kValue)}), StepOf({Waits("IteratorGetNext", WaitKind::kWork)})}),
            StepUse::kData);
  EXPECT_EQ(UseOf({StepOf({Waits("_Recv", WaitKind::kValue)}), StepOf({})}), StepUse::kCompute);
}

TEST(StatusWindowTest, AtTheBeginningThereAreNoRates) {
  StatusWindow window;
  TaskStatus status;
  const StatusSample sample{
      .time = kBegin, .steps = 40, .sent_bytes = 7, .received_bytes = 8, .global_step = 12, .looks = {1, 1, 1, 1}};
  window.Fill(sample, &status);
  EXPECT_EQ(status.steps, 40u);
  EXPECT_EQ(status.sent_bytes, 7u);
  EXPECT_EQ(status.received_bytes, 8u);
  EXPECT_EQ(status.global_step, 12);
  EXPECT_EQ(status.steps_per_second, 0);
  EXPECT_EQ(status.shares.compute, 0);
  EXPECT_TRUE(window.SteppedLately(sample));
  window.Add(sample);
  window.Fill({.time = kBegin + milliseconds(400), .steps = 50}, &status);
  EXPECT_EQ(status.steps, 50u);
  EXPECT_EQ(status.steps_per_second, 0);
  window.Fill({.time = kBegin + milliseconds(500), .steps = 50}, &status);
  EXPECT_EQ(status.steps_per_second, 20);
}

TEST(StatusWindowTest, RatesAreThoseOfTheLastSeconds) {
  StatusWindow window;
  // 100 steps/s for 100 s, and then 10 steps/s for 6 s.
  int64_t steps = 0;
  StatusSample sample;
  for (int second = 0; second <= 106; ++second) {
    sample = {.time = kBegin + std::chrono::seconds(second),
              .steps = steps,
              .sent_bytes = steps * 1000,
              .global_step = steps / 2,
              .looks = {second, 2 * second, 0, second}};
    if (second < 106) window.Add(sample);
    steps += second < 100 ? 100 : 10;
  }
  TaskStatus status;
  window.Fill(sample, &status);
  EXPECT_DOUBLE_EQ(status.steps_per_second, 10);
  EXPECT_DOUBLE_EQ(status.sent_per_second, 10'000);
  EXPECT_DOUBLE_EQ(status.received_per_second, 0);
  EXPECT_DOUBLE_EQ(status.global_steps_per_second, 5);
  EXPECT_DOUBLE_EQ(status.shares.compute, 0.5);
  EXPECT_DOUBLE_EQ(status.shares.data, 0);
  EXPECT_DOUBLE_EQ(status.shares.wait, 0.25);
  EXPECT_TRUE(window.SteppedLately(sample));
}

TEST(StatusWindowTest, ATaskThatMakesNoStepsAnyMore) {
  StatusWindow window;
  window.Add({.time = kBegin, .steps = 10});
  EXPECT_TRUE(window.SteppedLately({.time = kBegin + milliseconds(10), .steps = 10}));
  window.Add({.time = kBegin + milliseconds(1000), .steps = 20});
  EXPECT_TRUE(window.SteppedLately({.time = kBegin + milliseconds(1500), .steps = 20}));
  window.Add({.time = kBegin + milliseconds(2000), .steps = 20});
  EXPECT_FALSE(window.SteppedLately({.time = kBegin + milliseconds(2500), .steps = 20}));
}

TEST(StatusWindowTest, AGlobalStepMayBeYoungerThanTheWindow) {
  StatusWindow window;
  window.Add({.time = kBegin});
  window.Add({.time = kBegin + milliseconds(1000), .global_step = 100});
  TaskStatus status;
  window.Fill({.time = kBegin + milliseconds(3000), .global_step = 140}, &status);
  EXPECT_EQ(status.global_steps_per_second, 20);
}

// A global step that was restored from a checkpoint, or is gone, has no rate.
TEST(StatusWindowTest, AGlobalStepMayGoBack) {
  StatusWindow window;
  window.Add({.time = kBegin, .global_step = 500});
  TaskStatus status;
  window.Fill({.time = kBegin + milliseconds(1000), .global_step = 20}, &status);
  EXPECT_EQ(status.global_step, 20);
  EXPECT_EQ(status.global_steps_per_second, 0);
  window.Fill({.time = kBegin + milliseconds(2000)}, &status);
  EXPECT_EQ(status.global_step, std::nullopt);
  EXPECT_EQ(status.global_steps_per_second, 0);
}

}  // namespace
}  // namespace cohort
