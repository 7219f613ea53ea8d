// Tests in which the link between a worker and a parameter server is slow or cut, or carries bytes that are not a valid
// message. The link is a TcpProxy between the two processes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/stream.h"
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

// Opens a stream of one of our methods, and sends a frame with wrong contents on it.
void SendFrame(const std::shared_ptr<grpc::Channel>& channel, const char* method, const grpc::ByteBuffer& frame) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(kPatience));
  using Factory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>;
  const grpc::internal::RpcMethod rpc(method, grpc::internal::RpcMethod::BIDI_STREAMING, channel);
  const std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream(
      Factory::Create(channel.get(), rpc, &context));
  stream->Write(frame);
  grpc::ByteBuffer answer;
  while (stream->Read(&answer)) {  // reads the refusal, then the end
  }
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << method;
}

// As above, one layer higher: gRPC streams of our own methods have garbage in their frames, before the handshake or
// instead of it.
TEST_F(LinkTest, GarbageFramesDisturbNobody) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--pause_ms=2", "--steps=300", "--orphan_ms=0"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 10)) << cluster.Describe();
  std::mt19937 random(11);
  const auto channel = grpc::CreateChannel(cluster.address("ps", 0), grpc::InsecureChannelCredentials());
  for (int i = 0; i < 60; ++i) {
    for (const char* method : {kControlMethod, kBulkMethod}) {
      const std::string payload = RandomBytes(random, random() % 2000);
      if (i % 3 == 0) {
        const grpc::Slice slice(payload.data(), payload.size());
        SendFrame(channel, method, grpc::ByteBuffer(&slice, 1));
      } else {
        SendFrame(channel, method, EncodeFrame(static_cast<FrameType>(1 + i % 8), payload));
      }
    }
  }
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0);
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
}

}  // namespace
}  // namespace cohort::testing
