#include "cohort/device/update_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLongWait{60000};

TEST(UpdateGateTest, CloseGivesUpAndSaysHowManyStepsAreInside) {
  UpdateGate gate;
  gate.EnterStep();
  gate.EnterStep();
  try {
    gate.Close(milliseconds(1));
    FAIL();
  } catch (const DeadlineExceededError& e) {
    EXPECT_THAT(e.what(), HasSubstr("2 steps"));
  }
  gate.EnterStep();  // a failed attempt leaves the gate open
  for (int i = 0; i < 3; ++i) gate.LeaveStep();
  gate.Close(kLongWait);
  gate.Open();
  gate.EnterStep();
  gate.LeaveStep();
}

TEST(UpdateGateTest, AStepMayLeaveOnAnotherThread) {
  UpdateGate gate;
  gate.EnterStep();
  std::thread leaver([&] { gate.LeaveStep(); });
  gate.Close(kLongWait);
  leaver.join();
  gate.Open();
}

// Steps add 1 to two cells, one after the other; whoever has closed the gate sees them equal. Steps come
// without a pause, and the gate can be closed all the same.
TEST(UpdateGateTest, ACutNeverSeesHalfASetOfUpdates) {
  UpdateGate gate;
  std::array<std::atomic<int>, 2> cells{};
  std::atomic<bool> stop{false};
  std::vector<std::thread> steps;
  steps.reserve(2);
  for (int i = 0; i < 2; ++i) {
    steps.emplace_back([&] {
      while (!stop) {
        gate.EnterStep();
        ++cells[0];
        std::this_thread::yield();
        ++cells[1];
        gate.LeaveStep();
      }
    });
  }
  int torn = 0;
  for (int cut = 0; cut < 100; ++cut) {
    gate.Close(kLongWait);
    torn += cells[0] != cells[1];
    gate.Open();
  }
  stop = true;
  for (std::thread& step : steps) step.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace cohort
