// The rules of FakeDriver itself. Each test names the rule of a card that it stands for: a program that breaks the rule
// must go wrong on the fake driver.
#include "cohort/backends/cuda/fake/fake_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "cohort/backends/cuda/kernel_not_loaded.h"
#include "cohort/core/testing/throws.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr LaunchSize kOneThread;

// The argument of a kernel that sets a number.
struct SetNumber {
  float* to;
  float value;
};
const KernelCode kSetNumber = {"SetNumber", nullptr, [](const void* argument, const LaunchSize&) {
                                 const auto& set = *static_cast<const SetNumber*>(argument);
                                 std::atomic_ref(*set.to).store(set.value);
                               }};
// The argument of a kernel that reads a number. Another stream may write it at the same time.
struct GetNumber {
  float* from;
  float* to;
};
const KernelCode kGetNumber = {"GetNumber", nullptr, [](const void* argument, const LaunchSize&) {
                                 const auto& get = *static_cast<const GetNumber*>(argument);
                                 *get.to = std::atomic_ref(*get.from).load();
                               }};

class FakeDriverTest : public ::testing::Test {
 protected:
  static FakeDriverOptions TwoCards() {
    FakeDriverOptions options;
    options.cards = 2;
    return options;
  }
  ~FakeDriverTest() override {
    (void)Synchronize();
    for (void* data : memory_) driver_.Free(0, data);
    driver_.Destroy(0, stream_);
  }
  float* NewNumber() {
    memory_.push_back(driver_.Allocate(0, sizeof(float)));
    return static_cast<float*>(memory_.back());
  }
  void Set(float* to, float value, StreamHandle stream) {
    const SetNumber argument{to, value};
    driver_.Launch(kSetNumber, kOneThread, &argument, sizeof(argument), stream);
  }
  Status Synchronize() {
    try {
      const EventHandle event = driver_.MakeEvent(0, EventUse::kOrder);
      driver_.Record(event, stream_);
      const Status status = driver_.Synchronize(event);
      driver_.Destroy(0, event);
      return status;
    } catch (...) {
      return Status::FromCurrentException();
    }
  }
  static float Value(const float* on_card) {
    const CardMemoryAccess access;
    return *on_card;
  }
  FakeControl& control() { return driver_.control(); }

  FakeDriver driver_{TwoCards()};
  StreamHandle stream_ = driver_.MakeStream(0, "stream");
  std::vector<void*> memory_;
};

// A card's memory has any bytes when it is given, those of another tensor for example.
TEST_F(FakeDriverTest, NewMemoryIsPoisoned) {
  const float* const number = NewNumber();
  EXPECT_TRUE(std::isnan(Value(number)));
}

// A call that enqueues returns before its work has run.
TEST_F(FakeDriverTest, WorkIsNotDoneWhenItsCallReturns) {
  float* const number = NewNumber();
  control().Hold(0);
  Set(number, 3, stream_);
  EXPECT_NE(Value(number), 3);
  control().Release(0);
  EXPECT_TRUE(Synchronize().ok());
  EXPECT_EQ(Value(number), 3);
}

// cudaFree waits for all work of the card.
TEST_F(FakeDriverTest, FreeWaitsForTheWorkOfTheCard) {
  float* const number = NewNumber();
  for (int i = 0; i < 50; ++i) Set(number, static_cast<float>(i), stream_);
  void* const other = driver_.Allocate(0, 8);
  driver_.Free(0, other);
  EXPECT_EQ(Value(number), 49);
}

TEST_F(FakeDriverTest, MemoryIsFreedOnceAndOnItsOwnCard) {
  void* const data = driver_.Allocate(0, 8);
  EXPECT_THAT(MessageOf<InternalError>([&] { driver_.Free(1, data); }), HasSubstr("expected memory of the card"));
  driver_.Free(0, data);
  EXPECT_THAT(MessageOf<InternalError>([&] { driver_.Free(0, data); }), HasSubstr("expected memory of the card"));
}

// Kernels get their arguments by value, at the launch.
TEST_F(FakeDriverTest, ArgumentsAreThoseOfTheLaunch) {
  float* const number = NewNumber();
  SetNumber argument{number, 1};
  control().Hold(0);
  driver_.Launch(kSetNumber, kOneThread, &argument, sizeof(argument), stream_);
  argument.value = 2;
  control().Release(0);
  EXPECT_TRUE(Synchronize().ok());
  EXPECT_EQ(Value(number), 1);
}

// A graph has the arguments of its capture, but copies read what the memory holds when the graph runs.
TEST_F(FakeDriverTest, AGraphKeepsArgumentsAndReadsMemoryAnew) {
  float* const number = NewNumber();
  float* const copy = NewNumber();
  auto* const from = static_cast<float*>(driver_.AllocatePinned(0, sizeof(float)));
  Set(number, 0, stream_);  // loads the kernel
  driver_.BeginCapture(stream_);
  SetNumber argument{number, 1};
  driver_.Launch(kSetNumber, kOneThread, &argument, sizeof(argument), stream_);
  argument.value = 2;
  driver_.CopyAsync(copy, from, sizeof(float), Driver::Copy::kFromHost, stream_);
  const GraphHandle graph = driver_.EndCapture(stream_);
  EXPECT_TRUE(Synchronize().ok());
  EXPECT_EQ(Value(number), 0);  // a capture runs nothing
  for (const float value : {6.0f, 7.0f}) {
    *from = value;
    driver_.LaunchGraph(graph, stream_);
    EXPECT_TRUE(Synchronize().ok());
    EXPECT_EQ(Value(number), 1);
    EXPECT_EQ(Value(copy), value);
  }
  driver_.Destroy(graph);
  driver_.FreePinned(0, from);
}

// During a capture a card refuses what would need it at once, and the capture is lost.
TEST_F(FakeDriverTest, CallsThatNeedTheCardAreRefusedInACapture) {
  float* const number = NewNumber();
  void* const pinned = driver_.AllocatePinned(0, 8);
  const EventHandle event = driver_.MakeEvent(0, EventUse::kOrder);
  bool reached = false;
  const std::function<void()> calls[] = {
      [&] { driver_.Allocate(0, 8); },           [&] { driver_.Free(0, number); },
      [&] { driver_.AllocatePinned(0, 8); },     [&] { driver_.FreePinned(0, pinned); },
      [&] { driver_.MakeStream(0, "other"); },   [&] { (void)driver_.IsReached(event, &reached); },
      [&] { (void)driver_.Synchronize(event); }, [&] { driver_.LoadKernel(0, "kernel.so", "kernel"); },
  };
  for (const auto& call : calls) {
    driver_.BeginCapture(stream_);
    EXPECT_THAT(MessageOf<FailedPreconditionError>(call), HasSubstr("not permitted when stream is capturing"));
    EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { driver_.EndCapture(stream_); }),
                HasSubstr("previous error during capture"));
  }
  driver_.Destroy(0, event);
  driver_.FreePinned(0, pinned);
  EXPECT_EQ(control().live(), (FakeLive{1, 0, 1, 0, 0}));
}

TEST_F(FakeDriverTest, ALaunchIsCapturedOnlyIfTheCardHasTheCode) {
  float* const number = NewNumber();
  driver_.BeginCapture(stream_);
  std::function<void()> load;
  try {
    Set(number, 1, stream_);
  } catch (const KernelNotLoaded& kernel) {
    load = kernel.load;
  }
  ASSERT_TRUE(load) << "expected KernelNotLoaded";
  driver_.Destroy(driver_.EndCapture(stream_));  // the capture is not lost
  driver_.BeginCapture(stream_);
  EXPECT_THAT(MessageOf<FailedPreconditionError>(load), HasSubstr("not permitted when stream is capturing"));
  EXPECT_THROW(driver_.EndCapture(stream_), FailedPreconditionError);
  load();
  driver_.BeginCapture(stream_);
  Set(number, 1, stream_);
  driver_.Destroy(driver_.EndCapture(stream_));
}

// Another thread may go on during a capture that is thread-local, but not on the captured stream.
TEST_F(FakeDriverTest, AnotherThreadMayUseTheCardDuringACapture) {
  driver_.BeginCapture(stream_);
  std::thread([&] { driver_.Free(0, driver_.Allocate(0, 8)); }).join();
  driver_.Destroy(driver_.EndCapture(stream_));
  float* const number = NewNumber();
  driver_.BeginCapture(stream_);
  std::thread([&] { driver_.FillAsync(number, 0, sizeof(float), stream_); }).join();
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { driver_.EndCapture(stream_); }), HasSubstr("another thread"));
}

TEST_F(FakeDriverTest, ACaptureMayNotWaitForWorkOutsideOfIt) {
  const StreamHandle other = driver_.MakeStream(0, "other");
  const EventHandle event = driver_.MakeEvent(0, EventUse::kOrder);
  driver_.Record(event, other);
  driver_.BeginCapture(stream_);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { driver_.Wait(stream_, event); }), HasSubstr("uncaptured work"));
  EXPECT_THAT(ErrorOf([&] { driver_.EndCapture(stream_); }), HasSubstr("a wait for work outside of the capture"));
  driver_.Destroy(0, event);
  driver_.Destroy(0, other);
}

// Work of two streams has no order without a wait. Returns what a stream reads that another one sets to 1.
float ReadOnAnotherStream(uint64_t seed, bool waits) {
  FakeDriverOptions options;
  options.seed = seed;
  options.delay_probability = 0.5;
  FakeDriver driver(options);
  const StreamHandle writer = driver.MakeStream(0, "writer"), reader = driver.MakeStream(0, "reader");
  const EventHandle written = driver.MakeEvent(0, EventUse::kOrder), read = driver.MakeEvent(0, EventUse::kOrder);
  auto* const number = static_cast<float*>(driver.Allocate(0, sizeof(float)));
  float result = 0;
  const SetNumber set{number, 1};
  driver.Launch(kSetNumber, kOneThread, &set, sizeof(set), writer);
  driver.Record(written, writer);
  if (waits) driver.Wait(reader, written);
  const GetNumber get{number, &result};
  driver.Launch(kGetNumber, kOneThread, &get, sizeof(get), reader);
  driver.Record(read, reader);
  EXPECT_TRUE(driver.Synchronize(read).ok());
  for (const EventHandle event : {written, read}) driver.Destroy(0, event);
  for (const StreamHandle stream : {writer, reader}) driver.Destroy(0, stream);
  driver.Free(0, number);
  return result;
}

TEST_F(FakeDriverTest, AMissingWaitBetweenStreamsGivesWrongDataOnSomeSeed) {
  constexpr uint64_t kSeeds = 200;
  uint64_t wrong_at = 0;
  for (uint64_t seed = 1; seed <= kSeeds && wrong_at == 0; ++seed) {
    EXPECT_EQ(ReadOnAnotherStream(seed, /*waits=*/true), 1);
    if (ReadOnAnotherStream(seed, /*waits=*/false) != 1) wrong_at = seed;
  }
  EXPECT_GT(wrong_at, 0u);
}

// An error of a kernel is not reported by its launch but by a later call, and by all calls after that (a sticky error).
TEST_F(FakeDriverTest, AnErrorOfWorkComesLateAndStays) {
  float* const number = NewNumber();
  control().FailWork(0, 2);
  control().Hold(0);
  for (const float value : {1.0f, 2.0f, 3.0f}) EXPECT_NO_THROW(Set(number, value, stream_));
  control().Release(0);
  const auto is_named = AllOf(HasSubstr("illegal memory access"), HasSubstr("on card 0"));
  EXPECT_THAT(std::string(Synchronize().message()), is_named);
  EXPECT_EQ(Value(number), 1);  // what stood behind the failed work did not run
  EXPECT_THAT(MessageOf<InternalError>([&] { Set(number, 4, stream_); }), is_named);
  EXPECT_THAT(MessageOf<InternalError>([&] { driver_.Allocate(0, 8); }), is_named);
  EXPECT_THAT(MessageOf<InternalError>([&] { driver_.MakeEvent(0, EventUse::kOrder); }), is_named);
}

TEST_F(FakeDriverTest, ACardThatHasFailedLeavesTheOthersAlone) {
  void* const data = driver_.Allocate(1, 8);
  control().FailWork(0, 1);
  driver_.FillAsync(NewNumber(), 0, sizeof(float), stream_);
  EXPECT_FALSE(Synchronize().ok());
  const StreamHandle other = driver_.MakeStream(1, "other");
  const EventHandle event = driver_.MakeEvent(1, EventUse::kOrder);
  driver_.FillAsync(data, 0, 8, other);
  driver_.Record(event, other);
  EXPECT_TRUE(driver_.Synchronize(event).ok());
  driver_.Destroy(1, event);
  driver_.Destroy(1, other);
  driver_.Free(1, data);
}

// The first call that needs a card makes a context on it; listing the cards does not.
TEST_F(FakeDriverTest, AContextIsMadeAtTheFirstUse) {
  EXPECT_EQ(driver_.Card(1).name, "Fake Card");
  EXPECT_FALSE(control().has_context(1));
  driver_.FreeBytes(1);
  EXPECT_TRUE(control().has_context(1));
}

TEST_F(FakeDriverTest, WhatWasNotGivenBackIsCounted) {
  const FakeLive before = control().live();
  void* const data = driver_.Allocate(1, 8);
  void* const pinned = driver_.AllocatePinned(1, 8);
  const EventHandle event = driver_.MakeEvent(1, EventUse::kOrder);
  driver_.BeginCapture(stream_);
  const GraphHandle graph = driver_.EndCapture(stream_);
  EXPECT_EQ(control().live(), (FakeLive{before.blocks + 1, 1, before.streams, 1, 1}));
  driver_.Free(1, data);
  driver_.FreePinned(1, pinned);
  driver_.Destroy(1, event);
  driver_.Destroy(graph);
  EXPECT_EQ(control().live(), before);
}

TEST_F(FakeDriverTest, AnyCallThatTakesMemoryCanFail) {
  driver_.FreeBytes(0);
  const auto next = [&] { control().FailTaking(1); };
  next();
  EXPECT_EQ(driver_.Allocate(0, 8), nullptr);
  next();
  EXPECT_EQ(driver_.AllocatePinned(0, 8), nullptr);
  const std::function<void()> calls[] = {[&] { driver_.MakeStream(0, "other"); },
                                         [&] { driver_.MakeEvent(0, EventUse::kOrder); },
                                         [&] {
                                           driver_.BeginCapture(stream_);
                                           driver_.EndCapture(stream_);
                                         },
                                         [&] { driver_.FreeBytes(1); }};
  for (const auto& call : calls) {
    next();
    EXPECT_THAT(MessageOf<ResourceExhaustedError>(call), HasSubstr("out of memory (2"));
  }
  EXPECT_EQ(control().live(), (FakeLive{0, 0, 1, 0, 0}));
}

// A host cannot read memory of a card.
TEST_F(FakeDriverTest, AThreadOfTheHostThatTouchesMemoryOfACardEndsTheProcess) {
  if (!CardMemoryIsGuarded()) GTEST_SKIP() << "this processor has no protection keys";
  volatile float* const number = NewNumber();
  constexpr char kWhy[] = "a thread of the host has read or written memory of a card|Sanitizer";
  EXPECT_DEATH((void)*number, kWhy);
  EXPECT_DEATH(*number = 1, kWhy);
}

// The directions of copies are those of their addresses, and a graph takes pinned memory only.
TEST_F(FakeDriverTest, CopiesAndFillsCheckTheSidesOfTheirAddresses) {
  float* const number = NewNumber();
  float on_host = 0;
  const auto copy = [&](void* to, const void* from, Driver::Copy direction) {
    return ErrorOf([&] { driver_.CopyAsync(to, from, sizeof(float), direction, stream_); });
  };
  using enum Driver::Copy;
  EXPECT_EQ(copy(number, &on_host, kFromHost), "no error");
  EXPECT_EQ(copy(&on_host, number, kToHost), "no error");
  EXPECT_EQ(copy(number, number, kOnDevice), "no error");
  EXPECT_THAT(copy(number, &on_host, kToHost), HasSubstr("the direction of a copy"));
  EXPECT_THAT(copy(number, &on_host, kOnDevice), HasSubstr("the direction of a copy"));
  EXPECT_THAT(copy(&on_host, number, kFromHost), HasSubstr("the direction of a copy"));
  EXPECT_THAT(ErrorOf([&] { driver_.FillAsync(&on_host, 0, sizeof(float), stream_); }), HasSubstr("a fill is for"));
  EXPECT_THAT(ErrorOf([&] { driver_.FillAsync(number, 0, sizeof(float) + 1, stream_); }), HasSubstr("a fill is for"));
  auto* const pinned = static_cast<float*>(driver_.AllocatePinned(0, sizeof(float)));
  driver_.BeginCapture(stream_);
  EXPECT_EQ(copy(pinned, number, kToHost), "no error");
  EXPECT_THAT(copy(&on_host, number, kToHost), HasSubstr("expected pinned memory"));
  driver_.Destroy(driver_.EndCapture(stream_));
  (void)Synchronize();
  driver_.FreePinned(0, pinned);
}

// Without access a copy between cards works, but goes through host memory.
TEST(PeerAccessTest, ACopyBetweenCardsIsDirectIfThereIsAWay) {
  for (const bool has_way : {true, false}) {
    FakeDriverOptions options;
    options.cards = 3;
    options.has_peer_access = has_way;
    FakeDriver driver(options);
    const StreamHandle stream = driver.MakeStream(0, "stream");
    std::vector<void*> on;
    for (int card = 0; card < options.cards; ++card) on.push_back(driver.Allocate(card, sizeof(float)));
    const auto copy = [&](int to, int from) {
      driver.CopyAsync(on[to], on[from], sizeof(float), Driver::Copy::kOnDevice, stream);
      return driver.control().detours();
    };
    EXPECT_EQ(copy(0, 1), 1);
    driver.EnablePeerAccess(1, 0);
    EXPECT_EQ(copy(0, 1), has_way ? 1 : 2);
    EXPECT_EQ(copy(1, 0), has_way ? 1 : 3);
    EXPECT_EQ(copy(2, 0), has_way ? 2 : 4);
    EXPECT_EQ(copy(0, 0), has_way ? 2 : 4);
    driver.Destroy(0, stream);
    for (int card = 0; card < options.cards; ++card) driver.Free(card, on[card]);
  }
}

}  // namespace
}  // namespace cohort::cuda
