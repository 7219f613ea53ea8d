// How the transport over gRPC listens and dials: addresses, ports that are reserved or in use, and limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/grpc/refusal_log.h"
#include "cohort/cluster/grpc/testing/raw_peer.h"
#include "cohort/cluster/port_reservation.h"
#include "cohort/cluster/testing/recording_handler.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::HelloOf;
using testing::Identity;
using testing::RecordingHandler;
using testing::Soon;
using testing::Stranger;

const char* const kListeningPs = "/job:ps/replica:0/task:0";
const char* const kListeningWorker = "/job:worker/replica:0/task:0";
const char* const kListenToken = "a token of the tests";

TransportOptions ListenOptions() {
  TransportOptions options;
  options.token = kListenToken;
  return options;
}

int CountRefusals(const std::string& log) {
  int lines = 0;
  for (size_t at = 0; (at = log.find("refused a connection", at)) != std::string::npos; ++at) ++lines;
  return lines;
}

TEST(GrpcAddressTest, WhatCannotBeListenedOnIsNamed) {
  RecordingHandler handler;
  const auto listen = [&](const std::string& address) {
    const auto transport = MakeGrpcTransport(handler, ListenOptions());
    return ErrorOf([&] { transport->Listen(address); });
  };
  EXPECT_THAT(listen("no-such-host.invalid:0"), AllOf(HasSubstr("InvalidArgument"), HasSubstr("no-such-host.invalid")));
  // 192.0.2.0/24 is for documents: no machine has it.
  EXPECT_THAT(listen("192.0.2.7:0"),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("COHORT_BIND"), HasSubstr("192.0.2.7")));
  EXPECT_THAT(listen("0.0.0.0:0"), AllOf(HasSubstr("PermissionDenied"), HasSubstr("allow_insecure")));
  EXPECT_THAT(listen("127.0.0.1"), HasSubstr("InvalidArgument"));
}

// The launcher holds the reservation. Without the check, Linux would give each of two servers a part of the
// connections.
TEST(GrpcAddressTest, AServerSharesAPortWithAReservationAndNotWithAServer) {
  const PortReservation reservation;
  RecordingHandler at_first, at_second, at_worker;
  for (const std::string& address : {reservation.Address(), "localhost:" + std::to_string(reservation.port())}) {
    const auto first = MakeGrpcTransport(at_first, ListenOptions());
    EXPECT_EQ(first->Listen(address), reservation.port());
    first->SetIdentity(Identity(kListeningPs, address));
    const auto second = MakeGrpcTransport(at_second, ListenOptions());
    EXPECT_THAT(ErrorOf([&] { second->Listen(address); }), AllOf(HasSubstr("Unavailable"), HasSubstr("in use")));
    TransportOptions everywhere = ListenOptions();
    everywhere.allow_insecure = true;
    const auto third = MakeGrpcTransport(at_second, everywhere);
    EXPECT_THAT(ErrorOf([&] { third->Listen("0.0.0.0:" + std::to_string(reservation.port())); }),
                AllOf(HasSubstr("Unavailable"), HasSubstr("in use")));
    const auto worker = MakeGrpcTransport(at_worker, ListenOptions());
    worker->SetIdentity(Identity(kListeningWorker));
    for (int i = 0; i < 10; ++i) EXPECT_NE(worker->Dial(address, kListeningPs, Soon()), nullptr);
    first->Shutdown();
    EXPECT_THAT(ErrorOf([&] { worker->Dial(address, kListeningPs, Soon()); }),
                AllOf(HasSubstr("Unavailable"), HasSubstr("refused")));
  }
}

TEST(GrpcAddressTest, WhatCannotBeDialedIsNamed) {
  RecordingHandler handler;
  const auto transport = MakeGrpcTransport(handler, ListenOptions());
  EXPECT_THAT(ErrorOf([&] { transport->Dial("127.0.0.1:1", "", Soon()); }), HasSubstr("SetIdentity"));
  transport->SetIdentity(Identity(kListeningWorker));
  EXPECT_THAT(ErrorOf([&] { transport->Dial("no-such-host.invalid:1", "", Soon()); }),
              AllOf(HasSubstr("Unavailable"), HasSubstr("no-such-host.invalid")));
  EXPECT_THAT(ErrorOf([&] { transport->Dial("192.0.2.7:1", "", Soon()); }),
              AllOf(HasSubstr("PermissionDenied"), HasSubstr("allow_insecure")));
  transport->Shutdown();
  EXPECT_THAT(ErrorOf([&] { transport->Dial("127.0.0.1:1", "", Soon()); }), HasSubstr("shut down"));
}

TEST(GrpcLimitsTest, TheOldestHandshakeMakesRoomForAnother) {
  TransportOptions options = ListenOptions();
  options.max_handshakes_per_address = 4;
  options.handshake_timeout = std::chrono::seconds(60);
  RecordingHandler at_ps, at_worker;
  const auto ps = MakeGrpcTransport(at_ps, options);
  const int port = ps->Listen("127.0.0.1:0");
  const std::string address = "127.0.0.1:" + std::to_string(port);
  ps->SetIdentity(Identity(kListeningPs, address));
  Stranger talks(port);
  talks.Send(HelloOf(Identity(kListeningWorker), kListenToken, address));
  EXPECT_EQ(talks.Read(4 + 18).size(), 4 + 18u);
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<Stranger>(port));
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(silent[i]->ReadToEnd(), "") << i;  // closed, long before the timeout
  const auto worker = MakeGrpcTransport(at_worker, options);
  worker->SetIdentity(Identity(kListeningWorker));
  EXPECT_NE(worker->Dial(address, kListeningPs, Soon()), nullptr);
  talks.Send(WithLength("no proof"));
  EXPECT_NE(talks.ReadToEnd(), "");  // a peer that has sent something was not dropped for those that had not
}

// Each failure stops the acceptor for a tenth of a second here. So a peer that comes behind 12 of them waits for at
// least 1 s, however fast the machine is, and then it gets in.
TEST(GrpcLimitsTest, ManyFailedHandshakesSlowTheAcceptorDown) {
  TransportOptions options = ListenOptions();
  options.max_failed_handshakes_per_second = 10;
  RecordingHandler at_ps, at_worker;
  const auto ps = MakeGrpcTransport(at_ps, options);
  const int port = ps->Listen("127.0.0.1:0");
  const std::string address = "127.0.0.1:" + std::to_string(port);
  ps->SetIdentity(Identity(kListeningPs, address));
  ::testing::internal::CaptureStderr();
  std::vector<std::unique_ptr<Stranger>> strangers;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 12; ++i) {
    strangers.push_back(std::make_unique<Stranger>(port));
    strangers.back()->Send(WithLength("no hello"));
  }
  for (const auto& stranger : strangers) EXPECT_NE(stranger->ReadToEnd(), "");
  const auto worker = MakeGrpcTransport(at_worker, options);
  worker->SetIdentity(Identity(kListeningWorker));
  EXPECT_NE(worker->Dial(address, kListeningPs, Soon()), nullptr);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("max_failed_handshakes_per_second"));
  EXPECT_GE(CountRefusals(log), 1);
  EXPECT_LT(CountRefusals(log), 12) << "at most one line in a second";
}

// Twenty strangers give one line. The next line, after a second, says how many were left out.
TEST(RefusalLogTest, ManyRefusalsGiveALineASecond) {
  RefusalLog::Clock::time_point now{};
  RefusalLog log([&now] { return now; });
  const auto lines_of = [&](int strangers) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < strangers; ++i) log.Refused("192.0.2.1:" + std::to_string(i), "no proof");
    return ::testing::internal::GetCapturedStderr();
  };
  now += std::chrono::seconds(100);
  const std::string first = lines_of(20);
  EXPECT_EQ(CountRefusals(first), 1) << first;
  EXPECT_THAT(first, HasSubstr("W [transport] refused a connection from 192.0.2.1:0: no proof\n"));
  now += std::chrono::milliseconds(999);
  EXPECT_EQ(lines_of(2), "");
  now += std::chrono::milliseconds(1);
  EXPECT_THAT(lines_of(1), HasSubstr("192.0.2.1:0: no proof (21 more since the last such line)\n"));
  now += std::chrono::seconds(1);
  EXPECT_THAT(lines_of(1), HasSubstr("no proof\n"));
  EXPECT_EQ(log.count(), 24);
}

TEST(GrpcLimitsTest, AShortTokenIsRefused) {
  RecordingHandler handler;
  TransportOptions options;
  for (const char* const token : {"a", "15 characters.."}) {
    options.token = token;
    EXPECT_THAT(ErrorOf([&] { MakeGrpcTransport(handler, options); }),
                AllOf(HasSubstr("InvalidArgument"), HasSubstr("at least 16 characters; got "),
                      HasSubstr(std::to_string(options.token.size()))));
  }
  options.allow_short_token = true;
  EXPECT_EQ(ErrorOf([&] { MakeGrpcTransport(handler, options); }), "no error");
}

TEST(GrpcLimitsTest, MoreConnectionsThanTheLimitAreRefused) {
  TransportOptions options = ListenOptions();
  options.max_connections = 2;
  RecordingHandler at_ps, at_worker;
  const auto ps = MakeGrpcTransport(at_ps, options);
  const std::string address = "127.0.0.1:" + std::to_string(ps->Listen("127.0.0.1:0"));
  ps->SetIdentity(Identity(kListeningPs, address));
  const auto worker = MakeGrpcTransport(at_worker, options);
  worker->SetIdentity(Identity(kListeningWorker));
  const auto first = worker->Dial(address, kListeningPs, Soon());
  const auto second = worker->Dial(address, kListeningPs, Soon());
  EXPECT_THAT(ErrorOf([&] { worker->Dial(address, kListeningPs, Soon()); }),
              AllOf(HasSubstr("ResourceExhausted"), HasSubstr("max_connections"), HasSubstr(kListeningPs)));
  first->Close(Status(Code::kCancelled, "makes room"));
  EXPECT_FALSE(at_ps.WhyClosed(at_ps.Accepted(0)).ok());
  EXPECT_NE(worker->Dial(address, kListeningPs, Soon()), nullptr);
  EXPECT_FALSE(second->closed());
}

}  // namespace
}  // namespace cohort
