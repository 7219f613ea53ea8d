#include "cohort/core/process/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "cohort/core/mutex.h"
#include "cohort/core/thread_pool.h"

// Not in an unnamed namespace and not inlined, so that the stacks show them by name.
namespace stacks_test {

struct Gate {
  cohort::Mutex mu;
  cohort::CondVar changed;
  bool open COHORT_GUARDED_BY(mu) = false;
  int waiting COHORT_GUARDED_BY(mu) = 0;
};

[[gnu::noinline]] void HangInUserCode(Gate& gate) {
  cohort::MutexLock lock(gate.mu);
  ++gate.waiting;
  gate.changed.NotifyAll();
  while (!gate.open) gate.changed.Wait(gate.mu);
}

std::atomic<bool> spin{true};

[[gnu::noinline]] void SpinInUserCode(Gate& gate) {
  {
    cohort::MutexLock lock(gate.mu);
    ++gate.waiting;
    gate.changed.NotifyAll();
  }
  while (spin.load()) {
  }
}

}  // namespace stacks_test

namespace cohort {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void AwaitWaiting(stacks_test::Gate& gate, int count) {
  MutexLock lock(gate.mu);
  while (gate.waiting < count) ASSERT_TRUE(gate.changed.WaitFor(gate.mu, std::chrono::seconds(60)));
}

void Open(stacks_test::Gate& gate) {
  MutexLock lock(gate.mu);
  gate.open = true;
  gate.changed.NotifyAll();
}

const ThreadStack* Find(const std::vector<ThreadStack>& stacks, const std::string& name) {
  for (const ThreadStack& stack : stacks) {
    if (stack.name == name) return &stack;
  }
  return nullptr;
}

TEST(StacksTest, ShowTheFunctionsOfEachThread) {
  stacks_test::Gate gate;
  std::thread waits([&] {
    SetThreadName("test-waits");
    stacks_test::HangInUserCode(gate);
  });
  AwaitWaiting(gate, 1);
  const std::vector<ThreadStack> stacks = ThreadStacks();
  const std::string text = DescribeStacks(stacks);
  Open(gate);
  waits.join();
  const ThreadStack* stack = Find(stacks, "test-waits");
  ASSERT_NE(stack, nullptr) << text;
  EXPECT_THAT(stack->frames, Contains(HasSubstr("stacks_test::HangInUserCode"))) << text;
  EXPECT_FALSE(stack->idle);
  EXPECT_THAT(text, HasSubstr("'test-waits'"));
  const auto own = std::find_if(stacks.begin(), stacks.end(), [](const auto& s) { return s.thread == ThisThread(); });
  ASSERT_NE(own, stacks.end());
  EXPECT_THAT(own->frames, Contains(HasSubstr("ThreadStacks"))) << text;
}

#if !defined(COHORT_WAITS_BY_SYSTEM_CLOCK)  // ThreadSanitizer keeps signals back until the thread calls the system
TEST(StacksTest, ShowAThreadThatNeverWaits) {
  stacks_test::Gate gate;
  std::thread spins([&] {
    SetThreadName("test-spins");
    stacks_test::SpinInUserCode(gate);
  });
  AwaitWaiting(gate, 1);
  const std::vector<ThreadStack> stacks = ThreadStacks(std::chrono::seconds(60));
  stacks_test::spin = false;
  spins.join();
  const ThreadStack* stack = Find(stacks, "test-spins");
  ASSERT_NE(stack, nullptr);
  EXPECT_THAT(stack->frames, Contains(HasSubstr("stacks_test::SpinInUserCode")));
}
#endif

TEST(StacksTest, AThreadThatBlocksSignalsDoesNotHoldUpTheRest) {
  stacks_test::Gate gate;
  std::thread blocks([&] {
    SetThreadName("test-blocks");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    stacks_test::HangInUserCode(gate);
  });
  AwaitWaiting(gate, 1);
  const std::vector<ThreadStack> stacks = ThreadStacks(std::chrono::milliseconds(300));
  const std::vector<ThreadStack> again = ThreadStacks(std::chrono::milliseconds(300));
  Open(gate);
  blocks.join();
  for (const auto& all : {stacks, again}) {
    const ThreadStack* stack = Find(all, "test-blocks");
    ASSERT_NE(stack, nullptr);
    EXPECT_THAT(stack->frames, IsEmpty());
    EXPECT_EQ(stack->why_not, "it blocks signals");
    const auto own = std::find_if(all.begin(), all.end(), [](const auto& s) { return s.thread == ThisThread(); });
    ASSERT_NE(own, all.end());
    EXPECT_THAT(own->frames, Not(IsEmpty()));
  }
}

TEST(StacksTest, KnowAnIdleThread) {
  ThreadPool pool("test-pool", 1);
  stacks_test::Gate gate;
  pool.Schedule([&] { stacks_test::HangInUserCode(gate); });
  AwaitWaiting(gate, 1);
  const std::vector<ThreadStack> busy = ThreadStacks();
  Open(gate);
  ASSERT_NE(Find(busy, "test-pool"), nullptr);
  EXPECT_FALSE(Find(busy, "test-pool")->idle) << DescribeStacks(busy);
  // The thread is idle soon: nothing else is in its queue.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  bool idle = false;
  std::string text;
  while (!idle && std::chrono::steady_clock::now() < deadline) {
    const std::vector<ThreadStack> stacks = ThreadStacks();
    idle = Find(stacks, "test-pool")->idle;
    text = DescribeStacks(stacks);
  }
  EXPECT_TRUE(idle) << text;
}

TEST(StacksTest, ThreadsWithEqualStacksShareAnEntry) {
  const ThreadStack one{11, "a", {"f", "g"}, "", false};
  const ThreadStack two{12, "b", {"f", "g"}, "", false};
  const ThreadStack other{13, "c", {}, "it blocks signals", false};
  EXPECT_EQ(DescribeStacks({one, other, two}),
            "  thread 11 'a', 12 'b'\n    #0 f\n    #1 g\n  thread 13 'c'\n    no stack: it blocks signals\n");
}

}  // namespace
}  // namespace cohort
