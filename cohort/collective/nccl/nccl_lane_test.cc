// The lane of a member and the guard of its calls, with a library that tells what the lane says of its calls.
#include "cohort/collective/nccl/nccl_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/collective/nccl/abort_guard.h"
#include "cohort/collective/testing/in_graph.h"

namespace cohort::collective {
namespace {

using Clock = std::chrono::steady_clock;
using testing::LooseDevices;

// What the lane has said about the call that it is in: its limit, or nothing if it is in none.
struct Watch {
  std::optional<Clock::duration> limit;
  std::vector<std::string> unwatched;  // calls that the lane did not announce
  int idle_calls = 0;
  Clock::duration of_connect{};

  void Called(const char* name) {
    if (!limit) unwatched.push_back(name);
  }
};

class WatchedCommunicator final : public LibraryCommunicator {
 public:
  explicit WatchedCommunicator(Watch& watch) : watch_(watch) {}
  void Begin(LibraryCall) override { watch_.Called("Begin"); }
  bool IsIdle() override {
    watch_.Called("IsIdle");
    return ++watch_.idle_calls > 2;
  }
  bool is_on_device() const override { return false; }
  void Abort() override {}

 private:
  Watch& watch_;
};

class WatchedLibrary final : public CollectiveLibrary {
 public:
  explicit WatchedLibrary(Watch& watch) : watch_(watch) {}
  void Open() override {}
  std::string Describe() override { return "Watched 1.0"; }
  std::string PhysicalName(const Device&) override { return "card"; }
  bool Has(LibraryCollective, ReduceOp, DType) override { return true; }
  std::string NewId() override { return "id"; }
  std::unique_ptr<LibraryCommunicator> Connect(Device&, const std::string&, int, int, std::function<void()>) override {
    watch_.Called("Connect");
    watch_.of_connect = watch_.limit.value_or(Clock::duration());
    return std::make_unique<WatchedCommunicator>(watch_);
  }

 private:
  Watch& watch_;
};

TEST(NcclLaneTest, EachCallOfTheLibraryIsWatchedAlsoWhileItConnects) {
  RegisterAll();
  cuda::RegisterGpusForTests();
  LooseDevices devices("GPU", 1);
  const std::string task = "/job:worker/replica:0/task:0";
  const MemberList members(1, {DeviceName::Parse(task + "/device:GPU:0")}, task);
  Watch watch;
  WatchedLibrary library(watch);
  NcclLane lane(members, 0, std::shared_ptr<Device>(std::shared_ptr<void>(), devices.devices()[0]),
                {.on_ready = [](CollectiveCall&&) {},
                 .finish = [](const std::shared_ptr<TurnCall>&, const Status&, Tensor) {},
                 .explain = [](const Status& seen) { return seen; },
                 .ask = [](int64_t) {},
                 .on_call = [&](Clock::duration limit) { watch.limit = limit; },
                 .on_return = [&] { watch.limit.reset(); },
                 .on_end = [] {}});
  lane.Start(&library, "id");
  EXPECT_TRUE(lane.AwaitConnected().ok());
  lane.Stop(Status(Code::kCancelled, "the test ends"));
  lane.Join();
  EXPECT_THAT(watch.unwatched, ::testing::IsEmpty());
  EXPECT_EQ(watch.idle_calls, 3);
  EXPECT_GT(watch.of_connect, std::chrono::seconds(20));  // it makes a context of the card
}

// A call that began later may have to return earlier.
TEST(AbortGuardTest, TheCallWhoseLimitPassesFirstIsNamed) {
  std::promise<std::pair<int, Clock::duration>> stuck;
  AbortGuard guard([&](int rank, Clock::duration limit) { stuck.set_value({rank, limit}); });
  guard.Start(2);
  guard.Entered(0, std::chrono::hours(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the guard sleeps for an hour
  guard.Entered(1, std::chrono::milliseconds(10));
  auto future = stuck.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  const auto [rank, limit] = future.get();
  EXPECT_EQ(rank, 1);
  EXPECT_EQ(limit, std::chrono::milliseconds(10));
  guard.Left(0);
  guard.Left(1);
  guard.Ended();
  guard.Ended();
  guard.Join();
}

}  // namespace
}  // namespace cohort::collective
