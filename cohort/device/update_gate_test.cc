#include "cohort/device/update_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/device/update_observer.h"

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

class Positions final : public UpdateObserver {
 public:
  void OnUpdates(UpdateSet set) override {
    EXPECT_EQ(under_way_++, 0);
    seen.push_back(set.position);
    std::this_thread::yield();
    --under_way_;
    if (set.sequence < 0) throw UnavailableError("the log is full");
  }
  std::vector<int64_t> seen;

 private:
  std::atomic<int> under_way_{0};
};

UpdateSet SetOfOne(int64_t sequence) {
  UpdateSet set;
  set.sequence = sequence;
  set.updates.resize(1);
  return set;
}

TEST(UpdateGateTest, SetsAreGivenOneAfterAnother) {
  UpdateGate gate;
  EXPECT_FALSE(gate.observed());
  const auto observer = std::make_shared<Positions>();
  gate.SetObserver(observer, kLongWait);
  EXPECT_TRUE(gate.observed());
  std::vector<std::thread> steps;
  steps.reserve(4);
  for (int i = 0; i < 4; ++i) {
    steps.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        gate.EnterStep();
        gate.BeginTurn();
        gate.EndTurn(SetOfOne(k));
        gate.BeginTurn();
        gate.EndTurn({});  // nothing was updated: no set
        gate.LeaveStep();
      }
    });
  }
  for (std::thread& step : steps) step.join();
  ASSERT_EQ(observer->seen.size(), 200u);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(observer->seen[i], static_cast<int64_t>(i) + 1);
}

// The analysis cannot follow the lock through EXPECT_THROW.
void ExpectEndTurnThrows(UpdateGate& gate, UpdateSet set) COHORT_NO_THREAD_SAFETY_ANALYSIS {
  gate.BeginTurn();
  EXPECT_THROW(gate.EndTurn(std::move(set)), UnavailableError);
}

TEST(UpdateGateTest, AnObserverThatThrowsEndsTheTurnAllTheSame) {
  UpdateGate gate;
  const auto observer = std::make_shared<Positions>();
  gate.SetObserver(observer, kLongWait);
  ExpectEndTurnThrows(gate, SetOfOne(-1));
  gate.BeginTurn();
  gate.EndTurn(SetOfOne(1));
  EXPECT_EQ(observer->seen, (std::vector<int64_t>{1, 2}));
}

TEST(UpdateGateTest, AnObserverIsSetBetweenStepsOnly) {
  UpdateGate gate;
  gate.EnterStep();
  EXPECT_THROW(gate.SetObserver(std::make_shared<Positions>(), milliseconds(1)), DeadlineExceededError);
  EXPECT_FALSE(gate.observed());
  gate.LeaveStep();
  gate.SetObserver(std::make_shared<Positions>(), kLongWait);
  EXPECT_TRUE(gate.observed());
  gate.SetObserver(nullptr, kLongWait);
  EXPECT_FALSE(gate.observed());
}

}  // namespace
}  // namespace cohort
