// The pages /metrics and /healthz: their text, and the HTTP server with slow, many and wrong clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "cohort/cluster/port_reservation.h"
#include "cohort/cluster/status/metrics_server.h"
#include "cohort/cluster/status/metrics_text.h"
#include "cohort/cluster/testing/http_client.h"
#include "cohort/cluster/testing/metrics_reader.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using testing::Fetch;
using ::testing::HasSubstr;
using testing::HttpSocket;
using testing::ReadMetrics;
using ::testing::StartsWith;

TaskStatus Figures() {
  TaskStatus status;
  status.task = "/job:worker/replica:0/task:3";
  status.activity = TaskActivity::kRunning;
  status.uptime = std::chrono::milliseconds(1500);
  status.global_step = 12300;
  status.steps = (1ull << 53) + 1;
  status.steps_per_second = 8100.25;
  status.shares = {.data = 0.125, .compute = 0.5, .wait = 0.25};
  status.sent_bytes = 10;
  status.received_bytes = 20;
  status.memory_bytes = 1 << 30;
  status.restarts = 2;
  status.running = {
      {.age = std::chrono::milliseconds(4000), .without_progress = std::chrono::milliseconds(2500)},
      {.age = std::chrono::milliseconds(9000), .without_progress = std::chrono::milliseconds(9000), .may_wait = true}};
  status.peers = {{.task = "/job:ps/replica:0/task:0", .connected = true}, {.task = "/job:ps/replica:0/task:1"}};
  return status;
}

TEST(MetricsTextTest, AStrictReaderTakesIt) {
  const testing::Metrics metrics = ReadMetrics(MetricsText(Figures()));
  const std::string labels = "{job=\"worker\",task=\"3\"}";
  EXPECT_EQ(metrics.at("cohort_global_step" + labels), 12300);
  EXPECT_EQ(metrics.at("cohort_steps_per_second" + labels), 8100.25);
  EXPECT_EQ(metrics.at("cohort_uptime_seconds" + labels), 1.5);
  EXPECT_EQ(metrics.at("cohort_restarts" + labels), 2);
  EXPECT_EQ(metrics.at("cohort_received_bytes_total" + labels), 20);
  EXPECT_EQ(metrics.at("cohort_running_steps" + labels), 2);
  EXPECT_EQ(metrics.at("cohort_oldest_step_seconds" + labels), 9);
  EXPECT_EQ(metrics.at("cohort_step_without_progress_seconds" + labels), 2.5);
  EXPECT_EQ(metrics.at("cohort_peers_connected" + labels), 1);
  EXPECT_EQ(metrics.at("cohort_peers_lost" + labels), 1);
  EXPECT_EQ(metrics.at("cohort_time_share{job=\"worker\",task=\"3\",kind=\"compute\"}"), 0.5);
  EXPECT_EQ(metrics.at("cohort_task_state{job=\"worker\",task=\"3\",state=\"running\"}"), 1);
  EXPECT_EQ(metrics.at("cohort_task_state{job=\"worker\",task=\"3\",state=\"idle\"}"), 0);
  EXPECT_THAT(MetricsText(Figures()), HasSubstr("cohort_steps_total" + labels + " 9007199254740993\n"));
}

TEST(MetricsTextTest, ATaskWithoutAGlobalStepHasNoSuchMetric) {
  TaskStatus status = Figures();
  status.global_step.reset();
  EXPECT_EQ(ReadMetrics(MetricsText(status)).count("cohort_global_step{job=\"worker\",task=\"3\"}"), 0u);
}

class MetricsServerTest : public ::testing::Test {
 protected:
  std::string reason_;
  MetricsServer server_{0,
                        {.metrics = [] { return std::string("the figures\n"); }, .reason = [this] { return reason_; }}};
};

TEST_F(MetricsServerTest, BothPages) {
  const testing::HttpAnswer metrics = Fetch(server_.port(), "/metrics");
  EXPECT_EQ(metrics.code, 200);
  EXPECT_EQ(metrics.body, "the figures\n");
  EXPECT_THAT(metrics.head, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_EQ(Fetch(server_.port(), "/healthz").code, 200);
  reason_ = "worker 0 waits";
  const testing::HttpAnswer health = Fetch(server_.port(), "/healthz");
  EXPECT_EQ(health.code, 503);
  EXPECT_EQ(health.body, "worker 0 waits\n");
  const testing::HttpAnswer head = Fetch(server_.port(), "/metrics", "HEAD");
  EXPECT_EQ(head.code, 200);
  EXPECT_EQ(head.body, "");
}

TEST_F(MetricsServerTest, OtherRequestsAreRefused) {
  EXPECT_EQ(Fetch(server_.port(), "/").code, 404);
  EXPECT_EQ(Fetch(server_.port(), "/metrics", "POST").code, 405);
  EXPECT_EQ(Fetch(server_.port(), "/metrics", "DELETE").code, 405);
  EXPECT_EQ(Fetch(server_.port(), "/metrics", "GET", "evil.example:80").code, 403);
  EXPECT_EQ(Fetch(server_.port(), "/metrics", "GET", "127.0.0.1:9000").code, 200);
  HttpSocket nonsense(server_.port());
  nonsense.Write("\x16\x03\x01 nonsense\r\n\r\n");
  EXPECT_THAT(nonsense.ReadToEnd(), ::testing::Not(HasSubstr("200")));
  HttpSocket large(server_.port());
  large.Write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(1 << 20, 'x') + "\r\n\r\n");
  EXPECT_THAT(large.ReadToEnd(), ::testing::Not(HasSubstr("the figures")));
  EXPECT_EQ(Fetch(server_.port(), "/metrics").code, 200);
}

TEST_F(MetricsServerTest, ABodyIsReadAndForgotten) {
  HttpSocket connection(server_.port());
  connection.Write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n");
  connection.Write(std::string(200'000, 'x'));
  EXPECT_THAT(connection.ReadToEnd(), HasSubstr("the figures"));
}

TEST(MetricsServerErrorTest, APageThatThrowsIsAnError) {
  const MetricsServer server(0, {.metrics = []() -> std::string { throw InternalError("[status] no figures"); },
                                 .reason = [] { return std::string(); }});
  const testing::HttpAnswer answer = Fetch(server.port(), "/metrics");
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.body, "[status] no figures\n");
}

// More clients than the server takes at once say nothing or half a request. They are disconnected, and then the next
// client is served.
TEST_F(MetricsServerTest, SilentClientsDoNotBlockIt) {
  std::vector<std::unique_ptr<HttpSocket>> silent;
  for (int i = 0; i < 48; ++i) {
    silent.push_back(std::make_unique<HttpSocket>(server_.port()));
    if (i % 2 == 0) silent.back()->Write("GET /metr");
  }
  EXPECT_EQ(Fetch(server_.port(), "/metrics").code, 200);
}

TEST(MetricsServerErrorTest, APortInUseAndNoPort) {
  const MetricsPages pages{.metrics = [] { return std::string(); }, .reason = [] { return std::string(); }};
  const MetricsServer server(0, pages);
  EXPECT_THAT(MessageOf<UnavailableError>([&] { MetricsServer(server.port(), pages); }),
              AllOf(StartsWith("[metrics]"), HasSubstr(std::to_string(server.port()))));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { MetricsServer(65536, pages); }), HasSubstr("65536"));
}

TEST(MetricsServerErrorTest, APortThatALauncherHasReserved) {
  const PortReservation reservation;
  const MetricsServer server(reservation.port(),
                             {.metrics = [] { return std::string("x\n"); }, .reason = [] { return std::string(); }});
  EXPECT_EQ(server.port(), reservation.port());
  EXPECT_EQ(Fetch(reservation.port(), "/metrics").body, "x\n");
}

}  // namespace
}  // namespace cohort
