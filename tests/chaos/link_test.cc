// Tests in which the link between a worker and a parameter server is slow or cut, or carries bytes that are not a valid
// message. The link is a TcpProxy between the two processes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "cohort/cluster/grpc/socket.h"
#include "cohort/cluster/grpc/testing/raw_peer.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/core/str_cat.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"
#include "tests/chaos/tcp_proxy.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LinkTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
};

// A cluster with one ps behind a proxy. The ps listens on its reserved port. All tasks are told the address of the
// proxy.
struct ProxiedCluster {
  explicit ProxiedCluster(int64_t bytes_per_second = 0)
      : cluster({{"ps", 1}, {"worker", 1}}),
        own(cluster.address("ps", 0)),
        proxy(ParseAddress(own).port, bytes_per_second) {
    cluster.Advertise("ps", 0, proxy.address());
  }
  void Start(const Arguments& flags) {
    Arguments of_ps = flags;
    of_ps.push_back("--bind=" + own);
    cluster.Start("ps", 0, of_ps);
    cluster.Start("worker", 0, flags);
  }
  ProcessCluster cluster;
  const std::string own;
  TcpProxy proxy;
};

TEST_F(LinkTest, BulkOnASlowLinkDoesNotLookLikeDeath) {
  // Each step sends 3 MB of gradients and fetches 3 MB. That takes 2 s each way, which is more than the silence limit.
  ProxiedCluster slow(1'500'000);
  slow.Start(
      {"--share_memory=0", "--silence_ms=1500", "--heartbeat_ms=200", "--variables=2", "--size=375000", "--steps=2"});
  EXPECT_EQ(slow.cluster.task("worker", 0).Wait(), 0) << slow.cluster.Describe();
  EXPECT_EQ(slow.cluster.CountLines("worker", 0, "acked"), 2);
  EXPECT_EQ(slow.cluster.task("ps", 0).Wait(), 0) << slow.cluster.Describe();
  EXPECT_GE(slow.proxy.bytes_forwarded(), 2 * 2 * 3'000'000);
}

TEST_F(LinkTest, ACutLinkIsSilenceOnBothSides) {
  ProxiedCluster link;
  link.Start({"--silence_ms=1500", "--heartbeat_ms=200", "--pause_ms=5", "--recover=1", "--connect_secs=2"});
  ProcessCluster& cluster = link.cluster;
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 10)) << cluster.Describe();
  link.proxy.Cut();
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "failed", 1)) << cluster.Describe();
  EXPECT_THAT(cluster.LastLine("worker", 0, "failed"),
              AllOf(HasSubstr("Unavailable"), HasSubstr("/job:ps/replica:0/task:0"), HasSubstr("no byte for ")));
  link.proxy.Heal();
  const int before = cluster.CountLines("worker", 0, "acked");
  EXPECT_TRUE(cluster.WaitForLines("worker", 0, "acked", before + 10)) << cluster.Describe();
  cluster.Kill("worker", 0);
  const int64_t acknowledged = cluster.CountLines("worker", 0, "acked");
  const int64_t failed = cluster.CountLines("worker", 0, "failed") + 1;
  const ModelState state = ReadModel(cluster.spec());
  for (const int64_t applied : state.applied) {
    EXPECT_GE(applied, acknowledged);
    EXPECT_LE(applied, acknowledged + failed);
  }
}

int ConnectTo(const std::string& where) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(ParseAddress(where).port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

std::string RandomBytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST_F(LinkTest, GarbageOnThePortDisturbsNobody) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.StartAll({"--pause_ms=2", "--steps=300", "--orphan_ms=0"});
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(cluster.WaitForLines("worker", w, "acked", 10)) << cluster.Describe();
  std::mt19937 random(7);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::vector<int> open;
  for (int i = 0; i < 40; ++i) {
    const std::string garbage[] = {RandomBytes(random, 1 + random() % 5000),
                                   "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                   std::string("\x16\x03\x01\x02\x00\x01", 6) + RandomBytes(random, 600),
                                   preface + RandomBytes(random, 3000),
                                   std::string(100000, '\0'),
                                   ""};
    for (const char* job : {"ps", "worker"}) {
      const int fd = ConnectTo(cluster.address(job, 0));
      const std::string& bytes = garbage[static_cast<size_t>(i) % std::size(garbage)];
      send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (i % 3 == 0)
        open.push_back(fd);  // stays open and sends nothing more
      else
        close(fd);
    }
  }
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(cluster.task("worker", w).Wait(), 0) << cluster.Describe();
    EXPECT_EQ(cluster.CountLines("worker", w, "failed"), 0);
    EXPECT_EQ(cluster.CountLines("worker", w, "acked"), 300);
  }
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
  for (const int fd : open) close(fd);
}

// One layer higher: frames with wrong contents, of a peer that has the token.
TEST_F(LinkTest, GarbageFramesDisturbNobody) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=2", "--steps=300", "--orphan_ms=0"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 10)) << cluster.Describe();
  std::mt19937 random(12);
  TaskIdentity mine = Identity("/job:client/replica:0/task:9");
  mine.op_fingerprint = OpRegistry::Global().Fingerprint();
  mine.protocol_version = kProtocolVersion;
  for (int i = 0; i < 60; ++i) {
    RawPeer peer(cluster.address("ps", 0), std::getenv("COHORT_TOKEN"), mine);
    const std::string payload = RandomBytes(random, random() % 2000);
    peer.OpenControl();
    if (i % 2 == 0) peer.OpenBulk();
    if (i % 3 == 0) {
      peer.WriteUnsealed(RawFrame(payload));
    } else {
      peer.Write(EncodeFrame(static_cast<FrameType>(1 + i % 13), payload));
    }
  }
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0);
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
}

// As above, one layer lower: messages of a handshake with wrong contents.
TEST_F(LinkTest, GarbageInHandshakesDisturbsNobody) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=2", "--steps=300", "--orphan_ms=0"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 10)) << cluster.Describe();
  std::mt19937 random(11);
  for (int i = 0; i < 120; ++i) {
    const int fd = ConnectTo(cluster.address("ps", 0));
    std::string message = RandomBytes(random, 1 + random() % 4000);
    message[0] = static_cast<char>(1 + i % 6);  // the type
    const std::string bytes = WithLength(message);
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    char answer[64];
    EXPECT_GT(recv(fd, answer, sizeof(answer), 0), 0);  // a refusal
    close(fd);
  }
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0);
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
}

}  // namespace
}  // namespace cohort::testing
