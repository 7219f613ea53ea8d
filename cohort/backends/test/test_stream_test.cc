#include "cohort/backends/test/test_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

std::chrono::steady_clock::time_point In(milliseconds time) { return std::chrono::steady_clock::now() + time; }
constexpr milliseconds kLongWait{60000};

// Every piece of work is delayed.
TestDelays Always(uint64_t seed = 1) { return {seed, 1.0, std::chrono::microseconds(2000)}; }

// Work that runs until it is let go.
class Gate {
 public:
  std::function<void()> Work() {
    return [opened = opened_] { opened.wait(); };
  }
  void Open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

TEST(TestStreamTest, WorkRunsInOrderAndAllOfItBeforeTheEnd) {
  std::vector<int> order;
  {
    TestStream stream("test", Always());
    for (int i = 0; i < 5; ++i) stream.Enqueue([&order, i] { order.push_back(i); });
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST(TestStreamTest, AnEventIsReachedWhenTheWorkBeforeItHasRun) {
  Gate gate;
  TestStream stream("test", {});
  const auto before = stream.Record();
  stream.Enqueue(gate.Work());
  const auto event = stream.Record();
  EXPECT_TRUE(before->Synchronize(In(kLongWait)).ok());
  EXPECT_FALSE(event->reached());
  EXPECT_EQ(event->Synchronize(In(milliseconds(20))).code(), Code::kDeadlineExceeded);
  gate.Open();
  EXPECT_TRUE(event->Synchronize(In(kLongWait)).ok());
  EXPECT_TRUE(event->reached());
}

TEST(TestStreamTest, AStreamWaitsForAnEventOfAnother) {
  Gate gate;
  std::atomic<bool> first_ran{false};
  std::atomic<bool> in_order{false};
  TestStream first("first", {});
  TestStream second("second", {});
  first.Enqueue(gate.Work());
  first.Enqueue([&] { first_ran = true; });
  second.Wait(first.Record());
  second.Enqueue([&] { in_order = first_ran.load(); });
  const auto end = second.Record();
  EXPECT_EQ(end->Synchronize(In(milliseconds(20))).code(), Code::kDeadlineExceeded);
  gate.Open();
  EXPECT_TRUE(end->Synchronize(In(kLongWait)).ok());
  EXPECT_TRUE(in_order);
}

TEST(TestStreamTest, CallbacksRunOnceBeforeOrAfterTheEvent) {
  Gate gate;
  TestStream stream("test", {});
  stream.Enqueue(gate.Work());
  const auto event = stream.Record();
  std::atomic<int> calls{0};
  std::promise<void> called;
  event->OnReady([&](const Status& status) {
    EXPECT_TRUE(status.ok());
    ++calls;
    called.set_value();
  });
  EXPECT_EQ(calls, 0);
  gate.Open();
  ASSERT_EQ(called.get_future().wait_for(kLongWait), std::future_status::ready);
  event->OnReady([&](const Status&) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(TestStreamTest, AnEventOutlivesItsStream) {
  std::shared_ptr<StreamEvent> event;
  {
    TestStream stream("test", Always());
    event = stream.Record();
  }
  EXPECT_TRUE(event->reached());
}

TEST(TestStreamDeathTest, ACallbackThatCallsTheDeviceEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        TestStream stream("test", {});
        const auto event = stream.Record();
        (void)event->Synchronize(In(kLongWait));
        event->OnReady([&](const Status&) { stream.Enqueue([] {}); });
      },
      "callback called the device \\(Enqueue\\)");
}

}  // namespace
}  // namespace cohort
