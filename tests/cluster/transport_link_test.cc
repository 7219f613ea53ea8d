// Tests the transport over gRPC on a link that is slow, is cut, or lets only some connections pass, and with handlers
// that take long. A TcpProxy is the link. Nothing asserts on speed: times decide only how many messages arrive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/cluster/transport.h"
#include "tests/chaos/tcp_proxy.h"

namespace cohort::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kPs = "/job:ps/replica:0/task:0";
const char* const kWorker = "/job:worker/replica:0/task:0";
constexpr milliseconds kSilence{1000};
constexpr int kControl = 0;  // the control stream is the proxy's first connection

TransportOptions Options() {
  TransportOptions options;
  options.token = "a token of the tests";
  options.heartbeat_interval = milliseconds(100);
  options.silence_limit = kSilence;
  options.share_memory = false;  // as between two hosts
  return options;
}

// A ps, and a worker that reaches it through a proxy.
class LinkedPair {
 public:
  explicit LinkedPair(int64_t bytes_per_second = 0, const TransportOptions& options = Options())
      : ps(MakeGrpcTransport(at_ps, options)),
        port(ps->Listen("127.0.0.1:0")),
        proxy(port, bytes_per_second),
        worker(MakeGrpcTransport(at_worker, options)) {
    ps->SetIdentity(Identity(kPs, proxy.address()));
    worker->SetIdentity(Identity(kWorker));
  }
  ~LinkedPair() {
    worker->Shutdown();
    ps->Shutdown();
  }
  void Connect() {
    dialed = worker->Dial(proxy.address(), kPs, Soon());
    accepted = at_ps.Accepted();
  }

  RecordingHandler at_ps, at_worker;
  std::unique_ptr<Transport> ps;
  int port;
  TcpProxy proxy;
  std::unique_ptr<Transport> worker;
  std::shared_ptr<Connection> dialed;
  std::shared_ptr<Connection> accepted;
};

Tensor Bytes(int64_t size) { return Tensor::Zeros(DType::kUint8, Shape{size}); }

TEST(TransportLinkTest, ABulkStreamThatCannotOpenClosesTheConnection) {
  LinkedPair pair;
  pair.proxy.AcceptAtMost(1);
  // The ps may hear of the end before it has heard of the connection, so the test does not wait for that.
  pair.dialed = pair.worker->Dial(pair.proxy.address(), kPs, Soon());
  pair.dialed->Send({1, "", {Bytes(1 << 20)}});
  const Status why = pair.at_worker.WhyClosed(pair.dialed);
  EXPECT_EQ(why.code(), Code::kUnavailable);
  EXPECT_THAT(why.message(), AllOf(HasSubstr(kPs), HasSubstr("bulk stream")));
}

TEST(TransportLinkTest, ABulkStreamThatIsNotAnsweredClosesTheConnection) {
  TransportOptions options = Options();
  options.handshake_timeout = milliseconds(500);
  LinkedPair pair(0, options);
  pair.proxy.CutOnly(1);
  pair.Connect();
  const Status why = pair.at_worker.WhyClosed(pair.dialed);
  EXPECT_THAT(why.message(), AllOf(HasSubstr(kPs), HasSubstr("bulk stream")));
  EXPECT_EQ(pair.at_ps.WhyClosed(pair.accepted).code(), Code::kUnavailable);
}

TEST(TransportLinkTest, AByteThatIsChangedOnTheLinkClosesTheConnection) {
  LinkedPair pair;
  pair.Connect();
  const Tensor large = Bytes(1 << 20);
  pair.dialed->Send({1, "whole", {large}});
  EXPECT_EQ(pair.at_ps.Messages(1).size(), 1u);
  pair.proxy.DamageOnePiece();
  pair.dialed->Send({1, "damaged", {large}});
  const Status why = pair.at_ps.WhyClosed(pair.accepted);
  EXPECT_EQ(why.code(), Code::kUnavailable);
  EXPECT_THAT(why.message(), AllOf(HasSubstr(kWorker), HasSubstr("DataLoss"), HasSubstr("has a wrong MAC")));
  EXPECT_EQ(pair.at_worker.WhyClosed(pair.dialed).code(), Code::kUnavailable);
  EXPECT_EQ(pair.at_ps.message_count(), 1u);
}

// A ps has died. A process without the token listens on its port, and passes the bytes of a worker and of a client on
// to a living worker, which would then take them for its peers.
TEST(TransportLinkTest, AProcessThatPassesConnectionsOnIsOfNoUse) {
  const std::string living = "/job:worker/replica:0/task:1";
  RecordingHandler at_living, at_worker;
  std::atomic<bool> accepted{false};
  at_living.on_accepted = [&] { accepted = true; };
  const auto there = MakeGrpcTransport(at_living, Options());
  const int port = there->Listen("127.0.0.1:0");
  there->SetIdentity(Identity(living, "127.0.0.1:" + std::to_string(port)));
  const TcpProxy thief(port);
  const auto here = MakeGrpcTransport(at_worker, Options());
  here->SetIdentity(Identity(kWorker));
  EXPECT_THAT(ErrorOf([&] { here->Dial(thief.address(), kPs, Soon()); }),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr(kPs), HasSubstr(living)));
  EXPECT_THAT(
      ErrorOf([&] { here->Dial(thief.address(), "", Soon()); }),
      AllOf(HasSubstr("FailedPrecondition"), HasSubstr(thief.address()), HasSubstr("passes the connection on")));
  EXPECT_FALSE(accepted);
  EXPECT_NE(here->Dial("127.0.0.1:" + std::to_string(port), living, Soon()), nullptr);
  EXPECT_TRUE(accepted);
}

TEST(TransportLinkTest, ACutLinkIsSilenceOnBothSides) {
  LinkedPair pair;
  pair.Connect();
  pair.proxy.Cut();
  for (const Status& why : {pair.at_worker.WhyClosed(pair.dialed), pair.at_ps.WhyClosed(pair.accepted)}) {
    EXPECT_EQ(why.code(), Code::kUnavailable);
    EXPECT_THAT(why.message(), HasSubstr("no byte for "));
  }
}

TEST(TransportLinkTest, BulkOnASlowLinkDoesNotLookLikeDeath) {
  constexpr int64_t kBytesPerSecond = 1 << 20;
  LinkedPair pair(kBytesPerSecond);
  pair.Connect();
  const Tensor large = Bytes(3 * kBytesPerSecond);  // each direction takes several times the silence limit
  pair.dialed->Send({1, "there", {large}});
  pair.accepted->Send({1, "back", {large}});
  EXPECT_EQ(pair.at_ps.Messages(1).at(0).tensors.at(0).bytes(), large.bytes());
  EXPECT_EQ(pair.at_worker.Messages(1).at(0).tensors.at(0).bytes(), large.bytes());
  EXPECT_FALSE(pair.dialed->closed());
  EXPECT_FALSE(pair.accepted->closed());
}

TEST(TransportLinkTest, AnyByteIsLife) {
  constexpr int64_t kBytesPerSecond = 8 << 20;
  TransportOptions options = Options();
  options.silence_limit = 3 * kSilence;  // a busy machine may hold a byte back for a while
  LinkedPair pair(kBytesPerSecond, options);
  pair.Connect();
  pair.dialed->Send({1, "opens bulk", {Bytes(20000)}});
  EXPECT_EQ(pair.at_ps.Messages(1).size(), 1u);
  pair.proxy.CutOnly(kControl);  // no heartbeat arrives any more
  const Tensor large = Bytes(5 * kBytesPerSecond);
  pair.dialed->Send({1, "there", {large}});
  pair.accepted->Send({1, "back", {large}});
  EXPECT_EQ(pair.at_ps.Messages(2).at(1).header, "there");
  EXPECT_EQ(pair.at_worker.Messages(1).at(0).header, "back");
  // When none has arrived for long enough, one side notices it, and the other side gets its answer.
  const std::string seen =
      pair.at_worker.WhyClosed(pair.dialed).message() + pair.at_ps.WhyClosed(pair.accepted).message();
  EXPECT_THAT(seen, HasSubstr("no byte for "));
}

TEST(TransportLinkTest, LargeMessagesBetweenProcessesOfAHostDoNotUseTheLink) {
  TransportOptions options = Options();
  options.share_memory = true;
  options.silence_limit = milliseconds(60000);
  LinkedPair pair(0, options);
  pair.Connect();
  const Tensor large = Bytes(16 << 20);
  const auto forwarded_for_two = [&] {
    const int64_t before = pair.proxy.bytes_forwarded();
    pair.dialed->Send({1, "there", {large}});
    pair.accepted->Send({1, "back", {large}});
    EXPECT_EQ(pair.at_ps.Messages(1).at(0).tensors.at(0).bytes(), large.bytes());
    EXPECT_EQ(pair.at_worker.Messages(1).at(0).tensors.at(0).bytes(), large.bytes());
    pair.at_ps.Forget();
    pair.at_worker.Forget();
    return pair.proxy.bytes_forwarded() - before;
  };
  // The first messages use the link, until each peer has answered the other's offer.
  int64_t forwarded = forwarded_for_two();
  for (const auto deadline = Soon(); forwarded > 1 << 20 && std::chrono::steady_clock::now() < deadline;) {
    forwarded = forwarded_for_two();
  }
  EXPECT_LT(forwarded, 1 << 20);
}

TEST(TransportLinkTest, AHandlerThatTakesLongIsNotDeath) {
  LinkedPair pair;
  std::promise<void> handling;
  std::promise<void> go_on;
  pair.at_ps.on_message = [&](const auto&, const Message& message) {
    if (message.header != "long") return;
    handling.set_value();
    go_on.get_future().wait_for(std::chrono::seconds(60));
  };
  pair.Connect();
  pair.dialed->Send({1, "long", {}});
  handling.get_future().wait();
  // Both sides go on watching meanwhile. The ps says that it lives, and notices that the worker lives.
  std::this_thread::sleep_for(4 * kSilence);
  EXPECT_FALSE(pair.dialed->closed());
  EXPECT_FALSE(pair.accepted->closed());
  // Other connections are served, too.
  const auto other = pair.worker->Dial(pair.proxy.address(), kPs, Soon());
  EXPECT_FALSE(other->closed());
  go_on.set_value();
  pair.dialed->Send({1, "after", {}});
  EXPECT_EQ(pair.at_ps.Messages(2).at(1).header, "after");
}

TEST(TransportLinkTest, AHandlerThatTakesLongDoesNotHideADeadPeer) {
  LinkedPair pair;
  std::promise<void> handling;
  std::promise<void> go_on;
  pair.at_worker.on_message = [&](const auto&, const Message& message) {
    handling.set_value();
    go_on.get_future().wait_for(std::chrono::seconds(60));
  };
  pair.Connect();
  RecordingHandler at_other;
  const auto other = MakeGrpcTransport(at_other, Options());
  const std::string address = "127.0.0.1:" + std::to_string(other->Listen("127.0.0.1:0"));
  other->SetIdentity(Identity(kWorker, address));
  const auto to_other = pair.worker->Dial(address, "", Soon());
  at_other.Accepted()->Send({1, "long", {}});
  handling.get_future().wait();
  pair.proxy.Cut();
  EXPECT_THAT(pair.at_worker.WhyClosed(pair.dialed).message(), HasSubstr("no byte for "));
  go_on.set_value();
}

}  // namespace
}  // namespace cohort::testing
