// Each case runs in a process of its own, because a signal is of a whole process.
#include "cohort/core/process/stop_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>

namespace cohort {
namespace {

class StopSignalDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Sends SIGTERM to this process, and returns when an object's function was called.
  static void SignalOnce() {
    std::promise<void> called;
    const StopSignal signal([&] { called.set_value(); });
    raise(SIGTERM);
    called.get_future().wait();
  }
};

TEST_F(StopSignalDeathTest, TheFirstSignalCallsTheFunctions) {
  EXPECT_EXIT(
      {
        SignalOnce();
        _exit(StopSignal::Received() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "Got SIGTERM");
}

TEST_F(StopSignalDeathTest, ALaterObjectIsToldAtOnce) {
  EXPECT_EXIT(
      {
        SignalOnce();
        bool called = false;
        const StopSignal signal([&] { called = true; });
        _exit(called ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// The signal has come, but its thread has not called anything yet: the thread finds the object, or the constructor
// calls its function, but not both.
TEST_F(StopSignalDeathTest, AnObjectMadeInTheMomentOfTheSignalIsToldOnce) {
  EXPECT_EXIT(
      {
        std::promise<void> thread_runs;
        std::atomic<int> calls = 0;
        const StopSignal first([&] { thread_runs.set_value(); });
        raise(SIGTERM);
        const StopSignal second([&] { ++calls; });
        thread_runs.get_future().wait();
        {
          const StopSignal waits_for_the_thread([] {});
        }
        _exit(calls == 1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(StopSignalDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignal stays([] {});
        SignalOnce();
        raise(SIGTERM);
        _exit(1);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST_F(StopSignalDeathTest, WithoutAnObjectTheSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        {
          const StopSignal gone([] {});
        }
        raise(SIGTERM);
        _exit(1);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST_F(StopSignalDeathTest, ALoopThatDoesNotEndIsEndedAfterTheGrace) {
  EXPECT_EXIT(
      {
        setenv("COHORT_STOP_GRACE", "1", 1);
        const StopSignal stays([] {});
        raise(SIGTERM);
        for (;;) pause();
      },
      ::testing::KilledBySignal(SIGALRM), "");
}

TEST_F(StopSignalDeathTest, TheProgramsOwnChoiceStays) {
  EXPECT_EXIT(
      {
        signal(SIGTERM, SIG_IGN);
        const StopSignal signal([] {});
        raise(SIGTERM);
        _exit(StopSignal::Received() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cohort
