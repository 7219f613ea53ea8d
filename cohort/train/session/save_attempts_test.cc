#include "cohort/train/session/save_attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::train {
namespace {

using ::testing::HasSubstr;

class SaveAttemptsTest : public ::testing::Test {
 protected:
  SaveAttempts Attempts(int limit) {
    return SaveAttempts(limit, "test", [this] { return now_; });
  }
  void Pass(int milliseconds) { now_ += std::chrono::milliseconds(milliseconds); }
  static void FullDisk() { throw ResourceExhaustedError("No space left on device"); }

  SaveAttempts::Clock::time_point now_;
};

TEST_F(SaveAttemptsTest, TheLastOfSoManyFailuresInARowIsThrown) {
  SaveAttempts attempts = Attempts(3);
  EXPECT_FALSE(attempts.Try(FullDisk));
  Pass(1000);
  EXPECT_FALSE(attempts.Try(FullDisk));
  Pass(1000);
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { attempts.Try(FullDisk); }), HasSubstr("No space left"));
}

// A training that saves every 10 ms, while the disk is full for 1.99 s.
TEST_F(SaveAttemptsTest, FailuresOfOneSecondCountOnce) {
  SaveAttempts attempts = Attempts(3);
  for (int time = 0; time < 2000; time += 10) {
    EXPECT_FALSE(attempts.Try(FullDisk)) << time;
    Pass(10);
  }
  EXPECT_THROW(attempts.Try(FullDisk), ResourceExhaustedError);
}

TEST_F(SaveAttemptsTest, ASuccessForgetsFailures) {
  SaveAttempts attempts = Attempts(2);
  EXPECT_FALSE(attempts.Try(FullDisk));
  Pass(1);
  EXPECT_TRUE(attempts.Try([] {}));
  Pass(1);
  EXPECT_FALSE(attempts.Try(FullDisk));
  Pass(999);
  EXPECT_FALSE(attempts.Try(FullDisk));
  Pass(1);
  EXPECT_THROW(attempts.Try(FullDisk), ResourceExhaustedError);
}

TEST_F(SaveAttemptsTest, TheFirstFailureIsThrownIfOneIsTheLimit) {
  SaveAttempts attempts = Attempts(1);
  EXPECT_THROW(attempts.Try(FullDisk), ResourceExhaustedError);
}

TEST_F(SaveAttemptsTest, AnErrorOfAStepIsThrownAtOnce) {
  SaveAttempts attempts = Attempts(5);
  EXPECT_THROW(attempts.Try([] { throw UnavailableError("the server is lost"); }), UnavailableError);
}

TEST_F(SaveAttemptsTest, ALimitOfZeroIsRefused) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Attempts(0); }),
              HasSubstr("max_save_failures of at least 1; got 0"));
}

}  // namespace
}  // namespace cohort::train
