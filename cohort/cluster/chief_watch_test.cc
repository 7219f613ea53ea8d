#include "cohort/cluster/chief_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSelf[] = "/job:ps/replica:0/task:0";
constexpr char kChief[] = "/job:worker/replica:0/task:0";
constexpr milliseconds kSay{3'600'000};

ChiefWatch::Limits Limited(int orphan_ms, int chief_ms) {
  return {.orphan = milliseconds(orphan_ms), .chief = milliseconds(chief_ms)};
}

std::string NotThere() { return "nobody listens"; }

std::string NoLookExpected() {
  ADD_FAILURE() << "looked for the chief";
  return "";
}

TEST(ChiefWatchTest, AChiefThatNeverComes) {
  ChiefWatch watch(kSelf, kChief);
  watch.OnConnected("/job:worker/replica:0/task:1");  // not the chief
  EXPECT_THAT(ErrorOf([&] { watch.WaitForEnd(Limited(1, 20), kSay, NotThere); }),
              AllOf(HasSubstr("Unavailable"), HasSubstr(kSelf), HasSubstr(kChief), HasSubstr("within 0.02 s"),
                    HasSubstr("nobody listens")));
}

TEST(ChiefWatchTest, AChiefThatIsFoundAtTheLastLook) {
  ChiefWatch watch(kSelf, kChief);
  int looks = 0;
  watch.WaitForEnd(Limited(0, 20), kSay, [&] {
    ++looks;
    watch.OnConnected(kChief);
    watch.OnTrainingDone();
    return std::string();
  });
  EXPECT_EQ(looks, 1);
}

TEST(ChiefWatchTest, AChiefThatIsGone) {
  ChiefWatch watch(kSelf, kChief);
  watch.OnConnected(kChief);
  watch.OnDisconnected(kChief);
  EXPECT_THAT(ErrorOf([&] { watch.WaitForEnd(Limited(20, 0), kSay, NotThere); }),
              AllOf(HasSubstr("Unavailable"), HasSubstr(kChief), HasSubstr("gone for 0.02 s (orphan timeout)"),
                    HasSubstr("nobody listens")));
  EXPECT_THAT(ErrorOf([&] { watch.ThrowIfLost(milliseconds(20), NotThere); }), HasSubstr("orphan timeout"));
  EXPECT_EQ(ErrorOf([&] { watch.ThrowIfLost(std::chrono::hours(1), NotThere); }), "no error");
  EXPECT_EQ(ErrorOf([&] { watch.ThrowIfLost(milliseconds(0), NotThere); }), "no error");
}

// It does not use this task any more since it was restarted.
TEST(ChiefWatchTest, AChiefThatIsBackWhenTheOrphanTimeoutIsReached) {
  ChiefWatch watch(kSelf, kChief);
  watch.OnConnected(kChief);
  watch.OnDisconnected(kChief);
  int looks = 0;
  watch.WaitForEnd(Limited(20, 0), kSay, [&] {
    ++looks;
    watch.OnConnected(kChief);
    watch.OnTrainingDone();
    return std::string();
  });
  EXPECT_EQ(looks, 1);
}

TEST(ChiefWatchTest, TheEndWaitsForTheLastSession) {
  ChiefWatch watch(kSelf, kChief);
  watch.SetLeases(1);
  watch.OnTrainingDone();
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    closed = true;
    watch.SetLeases(0);
  });
  watch.WaitForEnd(Limited(1, 1), kSay, NoLookExpected);
  EXPECT_TRUE(closed);
  closer.join();
  EXPECT_EQ(ErrorOf([&] { watch.ThrowIfLost(milliseconds(1), NoLookExpected); }), "no error");
}

// Without another task as its chief a task serves until it is stopped.
TEST(ChiefWatchTest, NoLimitWithoutAnotherChief) {
  for (const char* chief : {kSelf, ""}) {
    ChiefWatch watch(kSelf, chief);
    watch.ThrowIfLost(milliseconds(1), NoLookExpected);
    std::thread stopper([&] {
      std::this_thread::sleep_for(milliseconds(30));  // longer than the limits, which must not count
      watch.Stop();
    });
    EXPECT_EQ(ErrorOf([&] { watch.WaitForEnd(Limited(1, 1), kSay, NoLookExpected); }), "no error");
    stopper.join();
  }
}

}  // namespace
}  // namespace cohort
