// Streams and events on the fake driver.
#include "cohort/backends/cuda/cuda_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};
std::chrono::steady_clock::time_point Later() { return std::chrono::steady_clock::now() + kPatience; }

// A number in the memory of card 0, and room for it in pinned memory.
struct Value {
  explicit Value(Driver& of)
      : driver(of),
        on_card(static_cast<int*>(of.Allocate(0, sizeof(int)))),
        on_host(static_cast<int*>(of.AllocatePinned(0, sizeof(int)))) {}
  ~Value() {
    driver.Free(0, on_card);
    driver.FreePinned(0, on_host);
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  void CopyToHost(StreamHandle stream) const {
    driver.CopyAsync(on_host, on_card, sizeof(int), Driver::Copy::kToHost, stream);
  }

  Driver& driver;
  int* const on_card;
  int* const on_host;
};

class CudaStreamTest : public ::testing::Test {
 protected:
  CudaStreamTest() { stream_.handle(); }  // the stream has been used

  FakeDriver fake_;
  Driver& driver_ = CardOr(fake_);
  CudaStream stream_{driver_, 0, "test"};
};

TEST_F(CudaStreamTest, AnEventIsReachedAfterTheWorkBeforeIt) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const Value value(driver_);
  fake_.control().Hold(0);
  driver_.FillAsync(value.on_card, 1, sizeof(int), stream_.handle());
  const auto event = stream_.Record();
  EXPECT_FALSE(event->reached());
  const Status late = event->Synchronize(std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(late.message(), HasSubstr("'test'"));
  fake_.control().Release(0);
  EXPECT_TRUE(event->Synchronize(Later()).ok());
  EXPECT_TRUE(event->reached());
  const CardMemoryAccess access;
  EXPECT_EQ(*value.on_card, 0x01010101);
}

// As the driver of a machine, this one lives as long as the process: a thread waits in it.
TEST_F(CudaStreamTest, AStreamWhoseWorkDoesNotEndIsLeftToTheProcess) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  static auto* const driver = new FakeDriver;
  static const auto* const value = new Value(*driver);
  FakeControl& control = driver->control();
  Status told;
  {
    CudaStream stream(*driver, 0, "hung", std::chrono::milliseconds(20));
    const StreamHandle handle = stream.handle();
    control.Hold(0);
    driver->FillAsync(value->on_card, 1, sizeof(int), handle);
    stream.Record()->OnReady([&](const Status& status) { told = status; });
  }
  EXPECT_EQ(told.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(control.live().streams, 1);
  EXPECT_GT(control.live().events, 0);
  control.Release(0);
  while (control.live().events > 0) std::this_thread::yield();  // ends: the thread gives its events back, and ends
  const CardMemoryAccess access;
  EXPECT_EQ(*value->on_card, 0x01010101);
}

TEST_F(CudaStreamTest, AStreamThatWasNotUsedNeedsNoCard) {
  COHORT_NEEDS_FAKE("the test has cards of its own");
  FakeDriver driver;
  {
    CudaStream stream(driver, 0, "unused");
    const auto event = stream.Record();
    EXPECT_TRUE(event->reached());
    bool called = false;
    event->OnReady([&](const Status& status) { called = status.ok(); });
    EXPECT_TRUE(called);
    EXPECT_TRUE(event->Synchronize(Later()).ok());
    stream_.Wait(event);
  }
  EXPECT_FALSE(driver.control().has_context(0));
}

TEST_F(CudaStreamTest, AStreamWaitsForAnEventOfAnother) {
  CudaStream other(driver_, 0, "other");
  const Value value(driver_);
  driver_.FillAsync(value.on_card, 1, sizeof(int), stream_.handle());
  other.Wait(stream_.Record());
  value.CopyToHost(other.handle());
  EXPECT_TRUE(other.Record()->Synchronize(Later()).ok());
  EXPECT_EQ(*value.on_host, 0x01010101);
}

// The end of a step relies on it: an error that the callback of an earlier event reports is there when the step ends.
TEST_F(CudaStreamTest, CallbacksOfEarlierEventsReturnBeforeSynchronizeReturns) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> called{0};
    fake_.control().Hold(0);
    for (int i = 0; i < 3; ++i) {
      stream_.Record()->OnReady([&called](const Status&) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        ++called;
      });
    }
    const auto last = stream_.Record();
    fake_.control().Release(0);
    ASSERT_TRUE(last->Synchronize(Later()).ok());
    ASSERT_EQ(called, 3);
  }
}

TEST_F(CudaStreamTest, CallbacksComeInTheOrderOfEvents) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  Mutex mu;
  std::vector<int> order;
  const auto note = [&](int n) {
    return [&, n](const Status&) {
      MutexLock lock(mu);
      order.push_back(n);
    };
  };
  fake_.control().Hold(0);
  const auto first = stream_.Record();
  const auto second = stream_.Record();
  second->OnReady(note(2));
  first->OnReady(note(1));
  second->OnReady(note(3));
  fake_.control().Release(0);
  EXPECT_TRUE(second->Synchronize(Later()).ok());
  {
    MutexLock lock(mu);
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
  }
  second->OnReady(note(4));  // at once
  MutexLock lock(mu);
  EXPECT_EQ(order.back(), 4);
}

// Otherwise the event of the other thread would come before what was enqueued for it, and its step would not learn of
// bad data that the first thread has asked for.
TEST_F(CudaStreamTest, NoEventOfAnotherThreadComesBetweenARecordsWorkAndItsEvent) {
  std::atomic<bool> other_recorded{false};
  bool is_first = true, came_between = false;
  std::thread other;
  stream_.SetBeforeRecord([&]() -> StreamEvent::Callback {
    if (!is_first) return {};  // the other thread's call
    is_first = false;
    other = std::thread([&] {
      stream_.Record();
      other_recorded = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // enough for an event, if nothing holds it back
    came_between = other_recorded;
    return {};
  });
  stream_.Record();
  other.join();
  stream_.SetBeforeRecord({});
  EXPECT_FALSE(came_between);
  EXPECT_TRUE(other_recorded);
}

TEST_F(CudaStreamTest, WhatIsEnqueuedBeforeARecordComesBeforeItsEvent) {
  const Value value(driver_);
  int seen = -1;
  stream_.SetBeforeRecord([&]() -> StreamEvent::Callback {
    driver_.FillAsync(value.on_card, 1, sizeof(int), stream_.handle());
    value.CopyToHost(stream_.handle());
    return [&](const Status&) { seen = *value.on_host; };
  });
  ASSERT_TRUE(stream_.Record()->Synchronize(Later()).ok());
  EXPECT_EQ(seen, 0x01010101);
  stream_.SetBeforeRecord({});
}

// An illegal address in a kernel: everything that waits learns of it, and nothing hangs.
TEST_F(CudaStreamTest, EventsOfACardThatHasFailedCarryItsError) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  const Value value(driver_);
  fake_.control().Hold(0);
  std::promise<Status> heard;
  fake_.control().FailWork(0, 1);
  driver_.FillAsync(value.on_card, 1, sizeof(int), stream_.handle());
  const auto event = stream_.Record();
  event->OnReady([&](const Status& status) { heard.set_value(status); });
  fake_.control().Release(0);
  const Status status = event->Synchronize(Later());
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("illegal memory access"));
  EXPECT_THAT(heard.get_future().get().message(), HasSubstr("illegal memory access"));
  {
    const CardMemoryAccess access;
    EXPECT_EQ(*value.on_card, -1);  // poison
  }
  const auto after = stream_.Record();  // does not throw
  EXPECT_TRUE(after->reached());
  EXPECT_THAT(after->Synchronize(Later()).message(), HasSubstr("illegal memory access"));
  stream_.Wait(event);
}

TEST_F(CudaStreamTest, AnEventOutlivesItsStream) {
  std::shared_ptr<StreamEvent> event;
  {
    CudaStream shorter(driver_, 0, "short");
    shorter.handle();
    event = shorter.Record();
  }
  EXPECT_TRUE(event->reached());
  bool called = false;
  event->OnReady([&](const Status& status) { called = status.ok(); });
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace cohort::cuda
