// Each case runs in a process of its own, because a signal is of a whole process.
#include "cohort/core/process/stop_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <string>

namespace cohort {
namespace {

class StopSignalDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Sends a signal to this process, and returns when an object's function was called.
  static void SignalOnce(int signal_number = SIGTERM) {
    std::promise<void> called;
    const StopSignal signal([&] { called.set_value(); });
    raise(signal_number);
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

TEST_F(StopSignalDeathTest, ControlCIsASignalToo) {
  EXPECT_EXIT(
      {
        SignalOnce(SIGINT);
        _exit(StopSignal::Received() && StopSignal::Name() == std::string("SIGINT") ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "Got SIGINT");
  EXPECT_EXIT(
      {
        const StopSignal stays([] {});
        SignalOnce(SIGINT);
        raise(SIGINT);
        _exit(1);
      },
      ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        const StopSignal stays([] {});
        SignalOnce(SIGTERM);
        raise(SIGINT);
        _exit(1);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

// As for a job in the background of a shell without job control.
TEST_F(StopSignalDeathTest, AnIgnoredControlCStaysIgnored) {
  EXPECT_EXIT(
      {
        signal(SIGINT, SIG_IGN);
        const StopSignal stays([] {});
        raise(SIGINT);
        if (StopSignal::Received()) _exit(1);
        SignalOnce(SIGTERM);
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
