// TLS between two transports: who gets in, and what both sides say about a refusal.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/testing/raw_peer.h"
#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/cluster/testing/test_certificates.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/count_entries.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Identity;
using testing::RecordingHandler;
using testing::Soon;
using testing::TestCertificates;
namespace experimental = grpc::experimental;
using std::chrono::milliseconds;

constexpr char kPsTask[] = "/job:ps/replica:0/task:0";
constexpr char kWorkerTask[] = "/job:worker/replica:0/task:0";
constexpr char kNoError[] = "no error";
constexpr char kClientTask[] = "/job:client/replica:0/task:12345";

constexpr char kJobToken[] = "secret of the job";

TransportOptions OptionsWith(const TlsOptions& files) {
  TransportOptions options;
  options.token = kJobToken;
  options.tls = files;
  return options;
}

// A peer that makes the TLS handshake with any certificate, or without one, and takes every certificate of the
// acceptor. Not thread-safe.
class RawTlsPeer {
 public:
  RawTlsPeer(const std::string& address, const std::optional<KeyedCertificate>& shown, const char* method) {
    experimental::TlsChannelCredentialsOptions options;
    options.set_verify_server_certs(false);
    options.set_check_call_host(false);
    options.set_certificate_verifier(std::make_shared<experimental::NoOpCertificateVerifier>());
    const TestCertificates any;
    std::vector<experimental::IdentityKeyCertPair> own;
    if (shown) own.push_back({shown->key, shown->certificate});
    options.set_certificate_provider(
        std::make_shared<experimental::StaticDataCertificateProvider>(any.authority().certificate(), own));
    options.watch_root_certs();
    if (shown) options.watch_identity_key_cert_pairs();
    channel_ = grpc::CreateChannel(address, experimental::TlsCredentials(options));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const grpc::internal::RpcMethod rpc(method, grpc::internal::RpcMethod::BIDI_STREAMING, channel_);
    stream_.reset(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
        channel_.get(), rpc, &context_));
  }
  ~RawTlsPeer() {
    context_.TryCancel();
    grpc::ByteBuffer rest;
    while (stream_->Read(&rest)) {
    }
    stream_->Finish();
  }
  // Makes the handshake, and throws its error; UnavailableError if the stream ends before.
  void Prove(DialerHandshake& handshake) {
    stream_->Write(EncodeFrame(FrameType::kHandshake, handshake.hello()));
    while (!handshake.done()) {
      grpc::ByteBuffer frame;
      if (!stream_->Read(&frame)) throw UnavailableError("the acceptor has ended the stream");
      const std::string answer = handshake.OnMessage(FrameView(frame).payload());
      if (!answer.empty()) stream_->Write(EncodeFrame(FrameType::kHandshake, answer));
    }
  }
  void Attach(uint64_t number) { stream_->Write(testing::AttachFrameOf(number)); }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
};

// A ps that listens with or without TLS, and what its log says.
class TlsTransportTest : public ::testing::Test {
 protected:
  void StartPs(const TlsOptions& files, milliseconds handshake_timeout = milliseconds(10000),
               const std::string& host = "127.0.0.1") {
    TransportOptions options = OptionsWith(files);
    options.handshake_timeout = handshake_timeout;
    ps_ = MakeGrpcTransport(at_ps_, options);
    address_ = StrCat(host, ":", ps_->Listen(host + ":0"));
    ps_->SetIdentity(Identity(kPsTask, address_));
  }
  // Dials as `task`, and returns the error, or kNoError.
  std::string ErrorOfDialing(const TlsOptions& files, const std::string& task = kWorkerTask,
                             const std::string& expected = kPsTask) {
    RecordingHandler handler;
    const auto dialer = MakeGrpcTransport(handler, OptionsWith(files));
    return ErrorOf([&] {
      dialer->SetIdentity(Identity(task));
      dialer->Dial(address_, expected, Soon());
    });
  }
  // Does the same, and returns what the ps has logged meanwhile. It may log after the dialer has seen the end.
  std::string LogOfDialing(const TlsOptions& files, std::string* error, const std::string& task = kWorkerTask) {
    ::testing::internal::CaptureStderr();
    *error = ErrorOfDialing(files, task);
    ps_->Shutdown();
    return ::testing::internal::GetCapturedStderr();
  }
  // Returns what the ps logs when a peer shows the certificate, and makes the handshake as `task`. Sets `error`.
  std::string LogOfPeer(const std::optional<KeyedCertificate>& shown, const std::string& task, std::string* error) {
    ::testing::internal::CaptureStderr();
    {
      RawTlsPeer peer(address_, shown, kControlMethod);
      DialerHandshake handshake(kJobToken, Identity(task), kPsTask, address_);
      *error = ErrorOf([&] { peer.Prove(handshake); });
    }
    ps_->Shutdown();
    return ::testing::internal::GetCapturedStderr();
  }
  // A new worker can send. If `pause` is not 0, the worker waits so long before it does.
  void ExpectServing(milliseconds pause = milliseconds(0)) {
    RecordingHandler handler;
    const auto dialer = MakeGrpcTransport(handler, OptionsWith(job_.For("worker")));
    dialer->SetIdentity(Identity(kWorkerTask));
    const auto connection = dialer->Dial(address_, kPsTask, Soon());
    std::this_thread::sleep_for(pause);
    connection->Send({1, "small", {}});
    connection->Send({1, "large", {Tensor::Zeros(DType::kFloat32, Shape{1 << 16})}});
    at_ps_.Messages(2);
    dialer->Shutdown();
  }

  const TestCertificates job_;
  RecordingHandler at_ps_;
  std::unique_ptr<Transport> ps_;
  std::string address_;
};

TEST_F(TlsTransportTest, TasksAndClientsOfTheJobGetIn) {
  StartPs(job_.For("ps"));
  ExpectServing();
  EXPECT_EQ(ErrorOfDialing(job_.For("client"), kClientTask), kNoError);
  EXPECT_EQ(ErrorOfDialing(job_.For("client"), kClientTask, ""), kNoError);
  EXPECT_EQ(ErrorOfDialing(job_.For("worker", 3), kClientTask), kNoError);  // a task may also be a client
}

TEST_F(TlsTransportTest, AForeignServerIsRefusedByTheDialer) {
  StartPs(job_.For("ps"));
  const TestCertificates other;
  std::string error;
  const std::string log = LogOfDialing(other.For("worker"), &error);
  // The dialer refuses first: to it, the certificate of the ps is the foreign one.
  EXPECT_THAT(error, AllOf(HasSubstr("PermissionDenied"), HasSubstr(kPsTask), HasSubstr(address_),
                           HasSubstr("TLS handshake failed"), HasSubstr("foreign")));
}

// The dialer trusts the authority of the ps, but has a certificate of another one.
TEST_F(TlsTransportTest, TheRefusingSideNamesTheFaultAndTheAddress) {
  StartPs(job_.For("ps"));
  const TestCertificates other;
  TlsOptions files = other.For("worker");
  WriteCertificateFile(files.ca_file, job_.authority().certificate() + other.authority().certificate());
  std::string error;
  const std::string log = LogOfDialing(files, &error);
  EXPECT_THAT(error, AllOf(HasSubstr("Unauthenticated"), HasSubstr(kPsTask), HasSubstr(address_),
                           HasSubstr("TLS handshake failed"), HasSubstr(files.certificate_file)));
  EXPECT_THAT(log, AllOf(ContainsRegex("W \\[transport\\] refused a connection from 127\\.0\\.0\\.1:[0-9]+: "
                                       "(\\[transport\\] )?TLS handshake failed"),
                         HasSubstr("TLS handshake failed"), HasSubstr("foreign")));
}

const ::testing::Matcher<std::string> RefusedWith(const std::string& fault) {
  return AllOf(ContainsRegex("W \\[transport\\] refused a connection from 127\\.0\\.0\\.1:[0-9]+: (\\[transport\\] "
                             ")?TLS handshake failed"),
               HasSubstr(fault));
}

TEST_F(TlsTransportTest, APeerWithoutACertificateIsRefused) {
  StartPs(job_.For("ps"));
  std::string error;
  EXPECT_THAT(LogOfPeer(std::nullopt, kWorkerTask, &error), RefusedWith("its certificate is missing"));
  EXPECT_THAT(error, HasSubstr("Unavailable"));
}

TEST_F(TlsTransportTest, AnExpiredCertificateIsRefused) {
  StartPs(job_.For("ps"));
  const std::time_t now = std::time(nullptr);
  const auto expired = job_.authority().Issue(SubjectOf("worker", 0), {now - 7200, now - 3600});
  std::string error;
  EXPECT_THAT(LogOfPeer(expired, kWorkerTask, &error), RefusedWith("its certificate is expired"));
  EXPECT_THAT(error, HasSubstr("Unavailable"));
}

// The certificate is good, but the peer says that it is another task.
TEST_F(TlsTransportTest, APeerCannotBeAnotherTaskThanThatOfItsCertificate) {
  StartPs(job_.For("ps"));
  const auto worker_1 = job_.authority().Issue(SubjectOf("worker", 1), ValidForDays(1));
  std::string error;
  EXPECT_THAT(LogOfPeer(worker_1, kWorkerTask, &error), RefusedWith("its certificate is another task's"));
  EXPECT_THAT(error, AllOf(HasSubstr("PermissionDenied"), HasSubstr("TLS handshake failed"), HasSubstr(address_),
                           HasSubstr("/job:worker/replica:0/task:1")));
}

// Whoever has the session key of a connection needs the certificate of its task, too.
TEST_F(TlsTransportTest, ABulkStreamNeedsTheCertificateOfItsConnection) {
  StartPs(job_.For("ps"));
  const auto worker_0 = job_.authority().Issue(SubjectOf("worker", 0), ValidForDays(1));
  const auto worker_1 = job_.authority().Issue(SubjectOf("worker", 1), ValidForDays(1));
  RawTlsPeer control(address_, worker_0, kControlMethod);
  DialerHandshake handshake(kJobToken, Identity(kWorkerTask), kPsTask, address_);
  control.Prove(handshake);
  control.Attach(handshake.connection().number);
  ASSERT_NE(at_ps_.Accepted(), nullptr);
  const auto error_of_bulk = [&](const KeyedCertificate& shown) {
    RawTlsPeer bulk(address_, shown, kBulkMethod);
    DialerHandshake of_bulk(handshake.connection(), handshake.peer());
    return ErrorOf([&] { bulk.Prove(of_bulk); });
  };
  EXPECT_THAT(error_of_bulk(worker_1), AllOf(HasSubstr("PermissionDenied"), HasSubstr("another task's")));
  EXPECT_EQ(error_of_bulk(worker_0), kNoError);
}

// A connected socket that sends `bytes` and nothing more.
Descriptor ConnectedSocket(const std::string& address, const std::string& bytes) {
  const HostPort where = ParseAddress(address);
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(where.port));
  inet_pton(AF_INET, where.host.c_str(), &to.sin_addr);
  EXPECT_EQ(connect(made.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  EXPECT_EQ(send(made.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  return made;
}

// Returns true when the other side has ended the connection, false if it has not after a minute.
bool WaitForSocketEnd(int fd) {
  const timeval minute{60, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
  char bytes[4096];
  ssize_t got = 0;
  while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
  }
  return got == 0 || errno == ECONNRESET;
}

// More stalled handshakes than there are slots. They end at the limit, and their descriptors come back.
TEST_F(TlsTransportTest, StalledHandshakesKeepNobodyOutAndEnd) {
  StartPs(job_.For("ps"), milliseconds(3000));
  ExpectServing();  // what gRPC keeps for ever is there now
  const int before = testing::CountEntries("/proc/self/fd");
  {
    std::vector<Descriptor> stalled;
    for (int i = 0; i < 30; ++i)
      stalled.push_back(ConnectedSocket(address_, i % 2 == 0 ? std::string("\x16\x03\x01", 3) : ""));
    ExpectServing();
    for (const Descriptor& one : stalled) EXPECT_TRUE(WaitForSocketEnd(one.get()));
  }
  ps_->Shutdown();
  EXPECT_LE(testing::CountEntries("/proc/self/fd"), before);
}

// gRPC gets a socket only when the first message is there. Both peers are told apart from one that makes the handshake.
TEST_F(TlsTransportTest, AFirstMessageThatIsCutOffOrTooLargeIsRefused) {
  const auto log_of = [&](const std::string& bytes, bool ends) {
    StartPs(job_.For("ps"));
    ::testing::internal::CaptureStderr();
    const Descriptor stranger = ConnectedSocket(address_, bytes);
    if (ends) shutdown(stranger.get(), SHUT_WR);
    EXPECT_TRUE(WaitForSocketEnd(stranger.get()));
    ps_->Shutdown();
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string head("\x16\x03\x01\x02\0", 5);  // of a message of 512 bytes
  EXPECT_THAT(log_of(head.substr(0, 1), true), RefusedWith("it has ended after its first bytes"));
  EXPECT_THAT(log_of(head + std::string(511, 'h'), true), RefusedWith("it has ended after its first bytes"));
  EXPECT_THAT(log_of(std::string("\x16\x03\x01\x10\x01", 5), false),
              RefusedWith("expected a first message of at most 4096 bytes; got 4097"));
}

// At the lowest limit each of them stops the acceptor for a second. So a peer that comes behind three of them waits for
// at least 2 s, however fast the machine is, and then it gets in.
TEST_F(TlsTransportTest, ATlsHandshakeThatFailsCountsAsTenFailures) {
  TransportOptions options = OptionsWith(job_.For("ps"));
  options.max_failed_handshakes_per_second = 10;
  ps_ = MakeGrpcTransport(at_ps_, options);
  address_ = StrCat("127.0.0.1:", ps_->Listen("127.0.0.1:0"));
  ps_->SetIdentity(Identity(kPsTask, address_));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    RawTlsPeer peer(address_, std::nullopt, kControlMethod);
    DialerHandshake handshake(kJobToken, Identity(kWorkerTask), kPsTask, address_);
    EXPECT_THAT(ErrorOf([&] { peer.Prove(handshake); }), HasSubstr("Unavailable"));
  }
  ExpectServing();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

// The copy of the socket that the acceptor keeps for its limits is given up in time.
TEST_F(TlsTransportTest, AConnectionOutlivesTheLimitOfItsHandshake) {
  const std::vector<std::pair<std::string, std::string>> hosts{
      {"127.0.0.1", "127.0.0.1"}, {"[::1]", "[::1]"}, {"[::]", "127.0.0.1"}};
  for (const auto& [listens, dialed] : hosts) {
    StartPs(job_.For("ps"), milliseconds(2000), listens);
    address_ = StrCat(dialed, ":", ParseAddress(address_).port);
    ExpectServing(milliseconds(3000));
    at_ps_.Forget();
  }
}

TEST_F(TlsTransportTest, AnotherTasksCertificateIsRefusedByBothSides) {
  StartPs(job_.For("ps"));
  std::string error;
  // The worker has its own certificate, and says that it is another worker. Its own side does not allow that.
  EXPECT_THAT(ErrorOfDialing(job_.For("worker", 1), kWorkerTask),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("/job:worker/replica:0/task:1")));
  // The process at the address has the certificate of another task than the one that is dialed.
  EXPECT_THAT(ErrorOfDialing(job_.For("worker"), kWorkerTask, "/job:ps/replica:0/task:1"),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr(address_), HasSubstr("TLS handshake failed"),
                    HasSubstr("another task's")));
}

TEST_F(TlsTransportTest, TheCertificateOfAClientIsNotThatOfAServer) {
  StartPs(job_.For("ps"));
  EXPECT_THAT(
      ErrorOf([&] { MakeGrpcTransport(at_ps_, OptionsWith(job_.For("client")))->SetIdentity(Identity(kPsTask)); }),
      AllOf(HasSubstr("FailedPrecondition"), HasSubstr("/job:client")));
}

TEST_F(TlsTransportTest, ATaskWithAnExpiredCertificateDoesNotStart) {
  EXPECT_THAT(ErrorOf([&] { MakeGrpcTransport(at_ps_, OptionsWith(job_.ExpiredFor("ps"))); }),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("expired"), HasSubstr("ps-0.pem")));
}

TEST_F(TlsTransportTest, ADialerWithoutTlsIsRefused) {
  StartPs(job_.For("ps"));
  std::string error;
  const std::string log = LogOfDialing({}, &error);
  EXPECT_THAT(error, AllOf(HasSubstr("PermissionDenied"), HasSubstr("TLS handshake failed"), HasSubstr(kPsTask),
                           HasSubstr(address_), HasSubstr("certificates")));
  EXPECT_THAT(log, RefusedWith("this side speaks only TLS"));
}

TEST_F(TlsTransportTest, ADialerWithTlsIsTurnedAwayByAServerWithout) {
  StartPs({});
  std::string error;
  const std::string log = LogOfDialing(job_.For("worker"), &error);
  EXPECT_THAT(error, AllOf(HasSubstr("Unauthenticated"), HasSubstr("TLS handshake failed"), HasSubstr(kPsTask),
                           HasSubstr(address_), HasSubstr("does not speak TLS")));
  EXPECT_THAT(
      log,
      ContainsRegex("refused a connection from 127\\.0\\.0\\.1:[0-9]+: .*the peer uses TLS, and this task does not"));
}

TEST_F(TlsTransportTest, APortWithoutAListenerIsStillUnavailable) {
  address_ = "127.0.0.1:1";
  EXPECT_THAT(ErrorOfDialing(job_.For("worker")), AllOf(HasSubstr("Unavailable"), HasSubstr("127.0.0.1:1")));
}

// gRPC logs an error if it is asked for the state of a channel that was made from a socket.
TEST_F(TlsTransportTest, WithoutTlsAConnectionEndsWithoutALineInTheLog) {
  StartPs({});
  std::string error;
  EXPECT_EQ(LogOfDialing({}, &error), "");
  EXPECT_EQ(error, kNoError);
}

TEST_F(TlsTransportTest, OtherAddressesThanLoopbackNeedNoPermission) {
  const auto everywhere = MakeGrpcTransport(at_ps_, OptionsWith(job_.For("ps")));
  EXPECT_GT(everywhere->Listen("0.0.0.0:0"), 0);
}

TEST_F(TlsTransportTest, TheTokenIsStillNeeded) {
  StartPs(job_.For("ps"));
  RecordingHandler handler;
  TransportOptions options = OptionsWith(job_.For("worker"));
  options.token = "another token of 16 bytes";
  const auto dialer = MakeGrpcTransport(handler, options);
  dialer->SetIdentity(Identity(kWorkerTask));
  EXPECT_THAT(ErrorOf([&] { dialer->Dial(address_, kPsTask, Soon()); }),
              AllOf(HasSubstr("PermissionDenied"), HasSubstr("token")));
}

}  // namespace
}  // namespace cohort
