#include "cohort/cluster/status/status_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/error.h"

namespace cohort {
namespace {

// A status in which no field has its default value.
TaskStatus FullStatus() {
  TaskStatus status;
  status.task = "/job:worker/replica:0/task:1";
  status.address = "127.0.0.1:2222";
  status.host = "node7";
  status.pid = 4711;
  status.incarnation = 0xfedcba9876543210;
  status.is_chief = true;
  status.activity = TaskActivity::kWaitingForChief;
  status.uptime = std::chrono::milliseconds(123456);
  status.global_step = -3;
  status.global_steps_per_second = 0.25;
  status.steps = 1'000'000;
  status.steps_per_second = 8100.5;
  status.shares = {0.125, 0.5, 0.25};
  status.sent_bytes = 1ull << 50;
  status.received_bytes = 17;
  status.sent_per_second = 1e9;
  status.received_per_second = 2.5;
  status.memory_bytes = 1 << 30;
  status.sessions = 2;
  status.variables = 5;
  status.variable_bytes = 4000;
  status.restarts = 3;
  status.hang = "a kernel does not return";
  status.running = {{.session = 7,
                     .step = 40,
                     .age = std::chrono::milliseconds(12100),
                     .without_progress = std::chrono::milliseconds(12000),
                     .may_wait = true,
                     .waits = {{true, "the value 'x:0'", "/job:ps/replica:0/task:0"}, {false, "AllReduce 'g'", ""}}}};
  status.more_running = 9;
  status.peers = {{"/job:ps/replica:0/task:0", "127.0.0.1:2223", true, std::chrono::milliseconds(300), 10, 20}};
  return status;
}

void ExpectSameStatus(const TaskStatus& a, const TaskStatus& b) {
  EXPECT_EQ(EncodeStatus({1, a, ""}).header, EncodeStatus({1, b, ""}).header);
  EXPECT_EQ(a.task, b.task);
  EXPECT_EQ(a.activity, b.activity);
  EXPECT_EQ(a.global_step, b.global_step);
  EXPECT_EQ(a.shares.wait, b.shares.wait);
  EXPECT_EQ(a.restarts, b.restarts);
  EXPECT_EQ(a.hang, b.hang);
  ASSERT_EQ(a.running.size(), b.running.size());
  for (size_t i = 0; i < a.running.size(); ++i) {
    EXPECT_EQ(a.running[i].without_progress, b.running[i].without_progress);
    ASSERT_EQ(a.running[i].waits.size(), b.running[i].waits.size());
    for (size_t j = 0; j < a.running[i].waits.size(); ++j) {
      EXPECT_EQ(a.running[i].waits[j].what, b.running[i].waits[j].what);
      EXPECT_EQ(a.running[i].waits[j].task, b.running[i].waits[j].task);
      EXPECT_EQ(a.running[i].waits[j].of_value, b.running[i].waits[j].of_value);
    }
  }
  ASSERT_EQ(a.peers.size(), b.peers.size());
  for (size_t i = 0; i < a.peers.size(); ++i) EXPECT_EQ(a.peers[i].received_bytes, b.peers[i].received_bytes);
}

TEST(StatusMessagesTest, RequestsSurvive) {
  for (const bool dump : {false, true}) {
    const StatusRequest request = DecodeStatusRequest(EncodeStatusRequest({77, dump}));
    EXPECT_EQ(request.request, 77u);
    EXPECT_EQ(request.dump, dump);
  }
}

TEST(StatusMessagesTest, RepliesSurvive) {
  for (const TaskStatus& status : {FullStatus(), TaskStatus()}) {
    const StatusReply reply = DecodeStatus(EncodeStatus({5, status, "a dump\nof two lines"}));
    EXPECT_EQ(reply.request, 5u);
    EXPECT_EQ(reply.dump, "a dump\nof two lines");
    ExpectSameStatus(reply.status, status);
  }
}

TEST(StatusMessagesTest, EveryShorterMessageIsRefused) {
  for (const Message& whole : {EncodeStatusRequest({300, true}), EncodeStatus({300, FullStatus(), "dump"})}) {
    const bool is_request = whole.header.size() < 8;
    for (size_t size = 0; size < whole.header.size(); ++size) {
      const Message cut{whole.kind, whole.header.substr(0, size), {}};
      if (is_request) {
        EXPECT_THROW(DecodeStatusRequest(cut), DataLossError) << size;
      } else {
        EXPECT_THROW(DecodeStatus(cut), DataLossError) << size;
      }
    }
    const Message longer{whole.kind, whole.header + 'x', {}};
    if (is_request) {
      EXPECT_THROW(DecodeStatusRequest(longer), DataLossError);
    } else {
      EXPECT_THROW(DecodeStatus(longer), DataLossError);
    }
  }
}

// A damaged byte gives either another status or a DataLossError, and allocates little. The sanitizers watch.
TEST(StatusMessagesTest, EveryDamagedByteIsSurvived) {
  const Message whole = EncodeStatus({300, FullStatus(), "dump"});
  for (size_t at = 0; at < whole.header.size(); ++at) {
    for (const int change : {1, 0x7f, 0x80, 0xff}) {
      Message damaged = whole;
      damaged.header[at] = static_cast<char>(damaged.header[at] ^ change);
      try {
        DecodeStatus(damaged);
      } catch (const DataLossError&) {
        continue;
      }
    }
  }
}

TEST(StatusMessagesTest, RatesThatAreNoNumbersAreRefused) {
  for (const double rate : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    TaskStatus status = FullStatus();
    status.steps_per_second = rate;
    EXPECT_THROW(DecodeStatus(EncodeStatus({1, status, ""})), DataLossError) << rate;
  }
}

}  // namespace
}  // namespace cohort
