#include "cohort/cluster/steps/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ClientId kClient{"/job:client/replica:0/task:5", 7};
const ClientId kOther{"/job:client/replica:0/task:6", 7};
const ClientId kRestarted{"/job:client/replica:0/task:5", 8};
constexpr milliseconds kLong = std::chrono::hours(1);

class LeaseTableTest : public ::testing::Test {
 protected:
  std::atomic<size_t> count_{0};  // as the table tells it
};

TEST_F(LeaseTableTest, WithoutALimitALeaseEndsWithItsClientsLastConnection) {
  std::vector<uint64_t> ended;
  LeaseTable leases(
      milliseconds(0), [&](uint64_t session) { ended.push_back(session); }, [&](size_t count) { count_ = count; });
  leases.Hold(1, kClient);
  leases.Hold(2, kOther);
  leases.Hold(3, kClient);
  EXPECT_FALSE(leases.HasEnded(1));
  leases.OnGone(kRestarted);  // another process
  EXPECT_THAT(ended, IsEmpty());
  leases.OnGone(kClient);
  EXPECT_THAT(ended, ElementsAre(1, 3));
  EXPECT_TRUE(leases.HasEnded(1));
  EXPECT_FALSE(leases.HasEnded(2));
  EXPECT_EQ(count_.load(), 3u);  // what was under way for them has yet to end
  leases.Erase(1);
  leases.Erase(3);
  EXPECT_EQ(count_.load(), 1u);
  leases.OnGone(kClient);
  EXPECT_EQ(ended.size(), 2u);
}

TEST_F(LeaseTableTest, AClosedSessionEndsOnce) {
  std::vector<uint64_t> ended;
  LeaseTable leases(
      milliseconds(0), [&](uint64_t session) { ended.push_back(session); }, [&](size_t count) { count_ = count; });
  leases.Hold(1, kClient);
  leases.End(1);
  leases.End(1);
  leases.End(99);
  leases.OnGone(kClient);
  EXPECT_THAT(ended, ElementsAre(1));
}

TEST_F(LeaseTableTest, AClientThatIsBackWithinTheLimitKeepsItsLease) {
  std::promise<uint64_t> ended;
  LeaseTable leases(
      milliseconds(300), [&](uint64_t session) { ended.set_value(session); }, [&](size_t count) { count_ = count; });
  leases.Hold(1, kClient);
  leases.Hold(2, kOther);
  leases.OnGone(kClient);
  leases.OnGone(kOther);
  leases.OnConnected(kClient);
  EXPECT_EQ(ended.get_future().get(), 2u);  // a second call of on_ended would throw
  EXPECT_FALSE(leases.HasEnded(1));
  EXPECT_TRUE(leases.HasEnded(2));
}

TEST_F(LeaseTableTest, AnotherProcessOfTheTaskDoesNotKeepTheLease) {
  std::promise<uint64_t> ended;
  LeaseTable leases(
      milliseconds(50), [&](uint64_t session) { ended.set_value(session); }, [&](size_t count) { count_ = count; });
  leases.Hold(1, kClient);
  leases.OnGone(kClient);
  leases.OnConnected(kRestarted);
  EXPECT_EQ(ended.get_future().get(), 1u);
}

TEST_F(LeaseTableTest, StopEndsTheWaitAndCallsNobody) {
  LeaseTable leases(
      kLong, [](uint64_t) { ADD_FAILURE() << "a lease ended"; }, [&](size_t count) { count_ = count; });
  leases.Hold(1, kClient);
  leases.OnGone(kClient);
  EXPECT_FALSE(leases.HasEnded(1));
  leases.Stop();
  EXPECT_EQ(count_.load(), 0u);
}

}  // namespace
}  // namespace cohort
