// What only the transport over gRPC has: strangers on its port, damaged frames, windows.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <limits>
#include <random>

#include "cohort/cluster/grpc/bulk.h"
#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/socket.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/grpc/testing/raw_peer.h"
#include "cohort/cluster/handshake.h"
#include "cohort/cluster/host_identity.h"
#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/core/testing/count_entries.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using testing::CountEntries;
using ::testing::HasSubstr;
using testing::HelloOf;
using testing::Identity;
using testing::RawFrame;
using testing::RawPeer;
using testing::RecordingHandler;
using testing::Soon;
using testing::Stranger;

const char* const kPs = "/job:ps/replica:0/task:0";
const char* const kWorker = "/job:worker/replica:0/task:0";
const char* const kToken = "a token of the tests";

TransportOptions Options() {
  TransportOptions options;
  options.token = kToken;
  return options;
}

class GrpcTransportTest : public ::testing::Test {
 protected:
  GrpcTransportTest() : ps_(MakeGrpcTransport(at_ps_, Options())), port_(ps_->Listen("127.0.0.1:0")) {
    ps_->SetIdentity(Identity(kPs, address()));
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::unique_ptr<Transport> MakeWorker(const TransportOptions& options = Options()) {
    auto worker = MakeGrpcTransport(at_worker_, options);
    worker->SetIdentity(Identity(kWorker));
    return worker;
  }
  // A message from a new peer arrives.
  void ExpectServing() {
    const size_t before = at_ps_.message_count();
    MakeWorker()->Dial(address(), kPs, Soon())->Send({1, "alive", {}});
    EXPECT_EQ(at_ps_.Messages(before + 1).back().header, "alive");
  }

  RecordingHandler at_ps_, at_worker_;
  std::unique_ptr<Transport> ps_;
  int port_;
};

// A bulk message comes on another stream than the handshake, and so perhaps on another thread.
TEST(GrpcOrderTest, NoMessageComesBeforeOnAcceptedHasReturned) {
  constexpr auto kLateMessage = std::chrono::milliseconds(300);
  RecordingHandler at_ps;
  RecordingHandler at_worker;
  std::promise<void> message;
  std::future<void> came = message.get_future();
  std::atomic<bool> accepted{false};
  at_ps.on_accepted = [&] {
    EXPECT_EQ(came.wait_for(kLateMessage), std::future_status::timeout);
    accepted = true;
  };
  at_ps.on_message = [&](const auto&, const Message&) {
    EXPECT_TRUE(accepted);
    message.set_value();
  };
  TransportOptions options = Options();
  options.network_threads = 3;
  const auto ps = MakeGrpcTransport(at_ps, options);
  const auto worker = MakeGrpcTransport(at_worker, options);
  const int port = ps->Listen("127.0.0.1:0");
  ps->SetIdentity(Identity(kPs, "127.0.0.1:" + std::to_string(port)));
  worker->SetIdentity(Identity(kWorker));
  const auto connection = worker->Dial("127.0.0.1:" + std::to_string(port), kPs, Soon());
  connection->Send({1, "large", {Tensor::Zeros(DType::kFloat32, Shape{1 << 16})}});
  EXPECT_EQ(at_ps.Messages(1).front().header, "large");
  worker->Shutdown();
  ps->Shutdown();
}

// 9 bytes for each dimension, and an empty tensor.
TEST(FrameSizeTest, TheBoundHoldsForLargeDimensions) {
  const int64_t large = std::numeric_limits<int64_t>::max();
  const Message message{
      3, "header", {Tensor(DType::kUint8, Shape{0, large, large, large, large, large, large, large})}};
  EXPECT_LE(EncodeMessages({message}).Length(), MaxEncodedSize(message));
  const Message strings{3, "", {Tensor::Vector<std::string>({"", "a", std::string(20'000, 'b')})}};
  EXPECT_LE(EncodeMessages({strings}).Length(), MaxEncodedSize(strings));
}

TEST_F(GrpcTransportTest, BulkDoesNotDelayControl) {
  const auto worker = MakeWorker();
  const auto connection = worker->Dial(address(), kPs, Soon());
  const Tensor large = Tensor::Zeros(DType::kUint8, Shape{40 << 20});
  constexpr size_t kBulk = 8;
  for (size_t i = 0; i < kBulk; ++i) connection->Send({1, "bulk", {large}});
  connection->Send({2, "control", {}});
  const std::vector<Message> got = at_ps_.Messages(kBulk + 1);
  EXPECT_EQ(got.back().header, "bulk");
  size_t received = 0;
  for (const Message& message : got) received += message.header == "bulk" ? message.tensors.at(0).bytes() : 0;
  EXPECT_EQ(received, kBulk * (40 << 20));
}

// Something that accepts connections and never says a word.
class SilentListener {
 public:
  SilentListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(where);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&where), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&where), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  }
  ~SilentListener() { close(fd_); }
  const std::string& address() const { return address_; }
  // Waits for the next connection and returns its descriptor.
  int Accept() const { return accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int fd_;
  std::string address_;
};

TEST_F(GrpcTransportTest, DialHasADeadline) {
  const SilentListener listener;
  const auto worker = MakeWorker();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  EXPECT_THAT(ErrorOf([&] { worker->Dial(listener.address(), kPs, deadline); }),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr(listener.address()), HasSubstr(kPs)));
  TransportOptions hasty = Options();
  hasty.handshake_timeout = std::chrono::milliseconds(200);
  EXPECT_THAT(ErrorOf([&] { MakeWorker(hasty)->Dial(listener.address(), "", Soon()); }), HasSubstr("DeadlineExceeded"));
}

TEST_F(GrpcTransportTest, ADialCanBeGivenUp) {
  const SilentListener listener;
  const auto worker = MakeWorker();
  const auto start = std::chrono::steady_clock::now();
  const DialEnd end(start + std::chrono::minutes(10),
                    [&] { return std::chrono::steady_clock::now() > start + std::chrono::milliseconds(100); });
  EXPECT_THAT(ErrorOf([&] { worker->Dial(listener.address(), kPs, end); }), HasSubstr("DeadlineExceeded"));
  EXPECT_LT(std::chrono::steady_clock::now(), start + std::chrono::seconds(5));  // the handshake may take 10 s
}

TEST_F(GrpcTransportTest, ADialThatWaitsEndsWithTheTransport) {
  const SilentListener listener;
  const auto worker = MakeWorker();
  std::string error;
  std::thread dialer([&] { error = ErrorOf([&] { worker->Dial(listener.address(), "", Soon()); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that it mostly is under way
  worker->Shutdown();
  dialer.join();
  EXPECT_THAT(error, HasSubstr("Unavailable"));
}

// Sends `bytes` to the port and reads what comes until the other side closes or two seconds are over.
void SendRaw(int port, const std::string& bytes, bool wait) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
  const timeval limit{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) break;  // it has had enough
    at += static_cast<size_t>(n);
  }
  char sink[4096];
  while (wait && recv(fd, sink, sizeof(sink), 0) > 0) {
  }
  close(fd);
}

std::string RandomBytes(std::mt19937_64& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kSettings("\0\0\0\x04\0\0\0\0\0", 9);

// The listener answers only after the dial has ended. A dialer that forgot its attempt would keep the socket open.
TEST_F(GrpcTransportTest, AConnectionThatComesTooLateIsClosed) {
  const SilentListener listener;
  const auto worker = MakeWorker();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  EXPECT_THAT(ErrorOf([&] { worker->Dial(listener.address(), kPs, deadline); }), HasSubstr("DeadlineExceeded"));
  const int fd = listener.Accept();
  const timeval limit{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  EXPECT_EQ(send(fd, kSettings.data(), kSettings.size(), MSG_NOSIGNAL), static_cast<ssize_t>(kSettings.size()));
  char sink[4096];
  ssize_t got = 1;
  while (got > 0) got = recv(fd, sink, sizeof(sink), 0);
  EXPECT_EQ(got, 0) << "the dialer did not close the socket within 20 s: " << std::strerror(errno);
  close(fd);
}

TEST_F(GrpcTransportTest, GarbageOnThePortHarmsNobody) {
  std::mt19937_64 random(1);
  const auto worker = MakeWorker();
  const auto before = worker->Dial(address(), kPs, Soon());
  SendRaw(port_, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", true);
  SendRaw(port_, "POST /cohort.Transport/Control HTTP/1.0\r\nContent-Length: 1000000000\r\n\r\n", true);
  SendRaw(port_, std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + RandomBytes(random, 508), true);
  SendRaw(port_, "", false);
  SendRaw(port_, "SSH-2.0-OpenSSH_9.2\r\n", true);
  SendRaw(port_, std::string(1 << 20, '\0'), true);
  SendRaw(port_, kPreface.substr(0, 10), false);
  SendRaw(port_, kPreface, false);
  for (int i = 0; i < 60; ++i) {
    SendRaw(port_, RandomBytes(random, 1 + random() % 2000), false);
    SendRaw(port_, kPreface + RandomBytes(random, 1 + random() % 2000), false);
    SendRaw(port_, kPreface + kSettings + RandomBytes(random, 1 + random() % 2000), false);
  }
  before->Send({1, "alive", {}});
  EXPECT_EQ(at_ps_.Messages(1)[0].header, "alive");
  ExpectServing();
}

TEST_F(GrpcTransportTest, GarbageInsteadOfAHandshakeIsRefused) {
  const std::string proof = WithLength(std::string("\x03") + std::string(32, 'p'));
  const std::vector<std::string> firsts = {
      WithLength(std::string(1, '\0')),
      WithLength("\x01"),
      WithLength("\x01garbage"),
      proof,
      WithLength("\x63"),
      std::string("\x01\x10\0\0", 4),
      std::string(4, '\0'),
      std::string(4, '\xff'),
      HelloOf(Identity(kWorker), kToken, address()) + proof,
      HelloOf(Identity(kWorker), kToken, address()) + HelloOf(Identity(kWorker), kToken, address())};
  for (const std::string& first : firsts) {
    Stranger stranger(port_);
    stranger.Send(first);
    EXPECT_THAT(stranger.ReadToEnd(), AllOf(::testing::Not(::testing::IsEmpty()), ::testing::Not(HasSubstr(kPs))))
        << "for " << first.size() << " bytes";
  }
  EXPECT_EQ(at_ps_.closed_count(), 0u);
  ExpectServing();
}

// The peer has the token.
TEST_F(GrpcTransportTest, GarbageInsteadOfTheFirstFrameEndsTheStream) {
  for (const char* first : {"", "\x01", "\x02", "\x02garbage!", "\x05", "\x63", "\x06\x01"}) {
    for (const char* method : {kControlMethod, kBulkMethod}) {
      RawPeer peer(address(), kToken, Identity(kWorker));
      peer.ProveControl();
      peer.Open(method);
      peer.Write(RawFrame(first));
      EXPECT_EQ(peer.ReadToEnd(), 0);
    }
  }
  {
    RawPeer peer(address(), kToken, Identity(kWorker));
    peer.ProveControl();
    peer.Open(kControlMethod);
    peer.WriteUnsealed(testing::AttachFrameOf(peer.secret().number));
    EXPECT_EQ(peer.ReadToEnd(), 0);
  }
  {
    RawPeer peer(address(), kToken, Identity(kWorker));
    peer.ProveControl();
    peer.Open(kControlMethod);
    peer.Write(RawFrame(std::string(kLargestFrame + 1, '\x01')));  // cut off unread
    EXPECT_EQ(peer.ReadToEnd(), 0);
  }
  {
    RawPeer peer(address(), kToken, Identity(kWorker));
    peer.ProveControl();
    peer.Open("/cohort.Transport/Other");
    EXPECT_EQ(peer.ReadToEnd(), 0);
  }
  EXPECT_EQ(at_ps_.closed_count(), 0u);
  ExpectServing();
}

TEST_F(GrpcTransportTest, WhoBeginsAndDoesNotGoOnIsCutOff) {
  TransportOptions options = Options();
  options.handshake_timeout = std::chrono::milliseconds(200);
  RecordingHandler handler;
  const auto hasty = MakeGrpcTransport(handler, options);
  const int port = hasty->Listen("127.0.0.1:0");
  const std::string where = "127.0.0.1:" + std::to_string(port);
  hasty->SetIdentity(Identity(kPs, where));
  EXPECT_EQ(Stranger(port).ReadToEnd(), "");
  Stranger half(port);
  half.Send(HelloOf(Identity(kWorker), kToken, where).substr(0, 30));
  EXPECT_EQ(half.ReadToEnd(), "");
  Stranger without_proof(port);
  without_proof.Send(HelloOf(Identity(kWorker), kToken, where));
  EXPECT_EQ(without_proof.ReadToEnd().size(), 4 + 18u);  // the nonce
  for (const char* method : {kControlMethod, kBulkMethod}) {
    RawPeer peer(where, kToken, Identity(kWorker));
    peer.ProveControl();
    peer.Open(method);
    EXPECT_EQ(peer.ReadToEnd(), 0);
  }
  const auto after = [&] {
    RawPeer late(where, kToken, Identity(kWorker));
    late.ProveControl();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    late.Open(kControlMethod);
    late.Write(testing::AttachFrameOf(late.secret().number));
    return late.ReadToEnd();
  };
  EXPECT_EQ(after(), 0);
  EXPECT_EQ(handler.closed_count(), 0u);
}

TEST_F(GrpcTransportTest, WhoOpensStreamsAndVanishesLeavesNothingBehind) {
  const auto vanish = [&] {
    Stranger(port_).Send(HelloOf(Identity(kWorker), kToken, address()));
    RawPeer peer(address(), kToken, Identity(kWorker));
    peer.ProveControl();
    peer.ProveControl();
    peer.Open("/cohort.Transport/Other");
    peer.ProveControl();
    peer.Open(kControlMethod);
    peer.Write(RawFrame("\x63"));
    peer.OpenControl();
    peer.OpenBulk();
  };
  for (int i = 0; i < 3; ++i) vanish();
  for (size_t n = 0; n < 3; ++n) EXPECT_FALSE(at_ps_.WhyClosed(at_ps_.Accepted(n)).ok());
  const int files = CountEntries("/proc/self/fd");
  constexpr size_t kRounds = 100;
  for (size_t n = 3; n < kRounds; ++n) {
    vanish();
    EXPECT_EQ(at_ps_.WhyClosed(at_ps_.Accepted(n)).code(), Code::kUnavailable);
  }
  EXPECT_LE(CountEntries("/proc/self/fd"), files + 16);  // the last one's may still be on their way out
  ExpectServing();
}

TEST_F(GrpcTransportTest, ABulkStreamNeedsTheKeyOfItsConnection) {
  RawPeer peer(address(), kToken, Identity(kWorker));
  peer.OpenControl();
  const auto connection = at_ps_.Accepted();
  ConnectionSecret wrong = peer.secret();
  wrong.key.back() = static_cast<char>(wrong.key.back() ^ 1);
  EXPECT_THAT(ErrorOf([&] { peer.ProveBulk(wrong); }), HasSubstr("PermissionDenied"));
  wrong = peer.secret();
  wrong.number += 1;
  EXPECT_THAT(ErrorOf([&] { peer.ProveBulk(wrong); }), HasSubstr("PermissionDenied"));
  EXPECT_FALSE(connection->closed());
  peer.OpenBulk();
  EXPECT_FALSE(connection->closed());
}

// Returns the next message of a handshake.
std::string ReadMessage(Stranger& stranger) { return stranger.Read(MessageLength(stranger.Read(4))); }

// Not even to a process that is started again with the same token and port, and has a connection with the same number.
TEST_F(GrpcTransportTest, TheHandshakeOfABulkSocketCannotBeSentAgain) {
  std::string recorded;
  const auto replay = [&] {
    Stranger stranger(port_);
    stranger.Send(recorded);
    return stranger.ReadToEnd();
  };
  uint64_t number = 0;
  {
    RawPeer peer(address(), kToken, Identity(kWorker));
    peer.OpenControl();
    ASSERT_NE(at_ps_.Accepted(), nullptr);
    number = peer.secret().number;
    DialerHandshake handshake(peer.secret(), Identity(kPs, address()));
    Stranger dialer(port_);
    recorded = WithLength(handshake.hello());
    dialer.Send(recorded);
    const std::string proof = WithLength(handshake.OnMessage(ReadMessage(dialer)));
    dialer.Send(proof);
    EXPECT_EQ(handshake.OnMessage(ReadMessage(dialer)), "");
    ASSERT_TRUE(handshake.done());
    recorded += proof;
    EXPECT_THAT(replay(), HasSubstr("wrong proof"));
  }
  ps_->Shutdown();
  ps_ = MakeGrpcTransport(at_ps_, Options());
  ASSERT_EQ(ps_->Listen(address()), port_);
  ps_->SetIdentity(Identity(kPs, address()));
  EXPECT_THAT(replay(), HasSubstr("belongs to no connection"));
  RawPeer peer(address(), kToken, Identity(kWorker));
  peer.OpenControl();
  EXPECT_EQ(peer.secret().number, number);
  EXPECT_THAT(replay(), HasSubstr("wrong proof"));
  peer.OpenBulk();
  ExpectServing();
}

// The first frame of a stream is good for that stream alone.
TEST_F(GrpcTransportTest, AStreamDoesNotTakeThePlaceOfAnother) {
  RawPeer first(address(), kToken, Identity(kWorker)), second(address(), kToken, Identity(kWorker));
  first.ProveControl();
  second.ProveControl();
  second.Open(kControlMethod);
  second.Write(testing::AttachFrameOf(first.secret().number));
  EXPECT_EQ(second.ReadToEnd(), 0);
  EXPECT_EQ(at_ps_.closed_count(), 0u);
  first.Open(kControlMethod);
  first.Write(testing::AttachFrameOf(first.secret().number));
  first.Write(EncodeMessages({{1, "from the first", {}}}));
  EXPECT_EQ(at_ps_.Messages(1)[0].header, "from the first");
}

Tensor Pattern(int64_t bytes) {
  Tensor tensor(DType::kUint8, Shape{bytes});
  for (int64_t i = 0; i < bytes; ++i) tensor.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + (i >> 10));
  return tensor;
}

std::string_view BytesOf(const Tensor& tensor) { return {static_cast<const char*>(tensor.raw_data()), tensor.bytes()}; }

TaskIdentity OfThisHost() {
  TaskIdentity mine = Identity(kWorker);
  mine.host = HostIdentity();
  return mine;
}

// A peer of this host to which the ps wants to send something large, and so offers a window.
class OfferedWindow {
 public:
  OfferedWindow(const std::string& address, RecordingHandler& at_ps, const Message& large)
      : peer_(address, kToken, OfThisHost()) {
    peer_.OpenControl();
    connection_ = at_ps.Accepted();
    connection_->Send(large);
    offer_ = std::string(FrameView(Read(kControl)).payload());
  }
  // Whether it is open; returns when the ps knows. The ps then begins to send.
  void Answer(bool open, RecordingHandler& at_ps) {
    Say(FrameType::kWindowAnswer, open ? 1 : 0);
    peer_.Write(EncodeMessages({{2, "answered", {}}}));
    EXPECT_EQ(at_ps.Messages(1).at(0).header, "answered");
    peer_.OpenBulk();
  }
  void Say(FrameType type, uint64_t number) {
    WireWriter payload;
    payload.Varint(number);
    peer_.Use(kControl);
    peer_.Write(EncodeFrame(type, payload.view()));
  }
  grpc::ByteBuffer ReadBulk() { return Read(kBulk); }
  Connection& connection() { return *connection_; }
  const std::string& offer() const { return offer_; }

 private:
  static constexpr size_t kControl = 0;
  static constexpr size_t kBulk = 1;
  grpc::ByteBuffer Read(size_t call) {
    peer_.Use(call);
    grpc::ByteBuffer buffer;
    if (!peer_.Read(&buffer)) throw UnavailableError("the stream has ended");
    return buffer;
  }
  RawPeer peer_;
  std::shared_ptr<Connection> connection_;
  std::string offer_;
};

TEST_F(GrpcTransportTest, AWindowThatThePeerCannotOpenIsNotUsed) {
  const Message large = {1, "large", {Pattern(3 << 20)}};
  OfferedWindow offered(address(), at_ps_, large);
  offered.Answer(false, at_ps_);
  offered.connection().Send(large);
  for (int i = 0; i < 2; ++i) {
    BulkReceiver receiver;
    while (!receiver.Add(offered.ReadBulk())) {  // it knows no others than the frames of bulk itself
    }
    EXPECT_EQ(BytesOf(receiver.Take().tensors.at(0)), BytesOf(large.tensors[0]));
  }
}

TEST_F(GrpcTransportTest, AWindowIsNotWrittenOverBeforeItIsGivenBack) {
  const Message large = {1, "large", {Pattern(int64_t{3} * kWindowBytes)}};
  OfferedWindow offered(address(), at_ps_, large);
  const auto window = ReceiveWindow::Open(offered.offer());
  ASSERT_NE(window, nullptr);
  offered.Answer(true, at_ps_);
  BulkReceiver receiver;
  std::vector<std::string> lying;  // chunks that have not been taken out
  size_t bytes = 0;                // in them
  for (size_t left = BulkSender(large).left(); left > 0;) {
    const grpc::ByteBuffer buffer = offered.ReadBulk();
    const FrameView frame(buffer);
    ASSERT_EQ(frame.type(), FrameType::kWindowChunk);
    lying.emplace_back(frame.payload());
    WireReader in(lying.back());
    in.Varint();
    in.Varint();
    const uint64_t size = in.Varint();
    bytes += size;
    left -= size;
    if (left > 0 && bytes + kLargestChunk <= kWindowBytes) continue;
    for (const std::string& chunk : lying) receiver.AddThrough(*window, chunk);
    offered.Say(FrameType::kGivenBack, lying.size());
    lying.clear();
    bytes = 0;
  }
  ASSERT_TRUE(receiver.complete());
  EXPECT_EQ(BytesOf(receiver.Take().tensors.at(0)), BytesOf(large.tensors[0]));
}

TEST_F(GrpcTransportTest, DamagedFramesCloseTheirConnectionOnly) {
  const auto worker = MakeWorker();
  const auto other = worker->Dial(address(), kPs, Soon());
  size_t accepted = 1;
  const auto expect_closed = [&](const char* method, const std::string& bytes, const std::string& why,
                                 bool sealed = true) {
    RawPeer peer(address(), kToken, Identity(kWorker));
    peer.OpenControl();
    const auto connection = at_ps_.Accepted(accepted++);
    if (std::string(method) == kBulkMethod) peer.OpenBulk();
    sealed ? peer.Write(RawFrame(bytes)) : peer.WriteUnsealed(RawFrame(bytes));
    const Status status = at_ps_.WhyClosed(connection);
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(kWorker), HasSubstr("DataLoss"), HasSubstr(why)));
  };
  const std::string heartbeat = std::string("\x05") + std::string(kMacBytes, 'm');
  expect_closed(kControlMethod, heartbeat, "frame 1 of the stream, of 17 bytes, has a wrong MAC", false);
  expect_closed(kBulkMethod, "\x08" + heartbeat, "frame 1 of the stream, of 18 bytes, has a wrong MAC", false);
  expect_closed(kControlMethod, "\x05", "expected at least 1 byte and a MAC", false);
  expect_closed(kControlMethod, "", "expected at least 1 byte and a MAC");
  expect_closed(kControlMethod, "\x63", "got type 99");
  expect_closed(kControlMethod, "\x07", "type 7 on a control stream");
  expect_closed(kControlMethod, "\x0b\x01", "an answer to no offer");
  expect_closed(kControlMethod, "\x0c\x01", "a piece of none");
  expect_closed(kControlMethod, "\x06\x05", "cut off");
  expect_closed(kControlMethod, std::string("\x06\x01\x01\x00\x01\x63\x00\x00", 8), "dtype number 99");
  expect_closed(kBulkMethod, "\x06", "type 6 on a bulk stream");
  expect_closed(kBulkMethod, "\x08", "a chunk outside");
  expect_closed(kBulkMethod, std::string("\x0d\x02\x00\x01", 4), "one that is not open");
  expect_closed(kBulkMethod, std::string("\x07\x01\x01\x01", 4), "more bytes than the head");
  EXPECT_FALSE(other->closed());
  other->Send({1, "alive", {}});
  EXPECT_EQ(at_ps_.Messages(1)[0].header, "alive");
  ExpectServing();
}

}  // namespace
}  // namespace cohort
