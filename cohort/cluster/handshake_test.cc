// The handshake without sockets: what each side accepts, and what somebody between the two can do.
#include "cohort/cluster/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Identity;

const char* const kDialedPs = "/job:ps/replica:0/task:0";
const char* const kDialingWorker = "/job:worker/replica:0/task:0";
const char* const kOtherWorker = "/job:worker/replica:0/task:1";
const char* const kHandshakeToken = "a token of the tests";
constexpr int kPsPort = 2222;
const char* const kPsAddress = "127.0.0.1:2222";

std::optional<ConnectionSecret> NoConnection(uint64_t) { return std::nullopt; }

// One handshake with both sides in hand.
struct Handshake {
  explicit Handshake(const std::string& expected_task = kDialedPs,
                     const TaskIdentity& worker = Identity(kDialingWorker), const std::string& dialed = kPsAddress)
      : dialer(kHandshakeToken, worker, expected_task, dialed), acceptor(kHandshakeToken, NoConnection) {}
  // Lets the dialer prove itself.
  void Prove() { EXPECT_EQ(acceptor.OnMessage(dialer.OnMessage(acceptor.OnMessage(dialer.hello()))), ""); }
  void Welcome(const TaskIdentity& ps = Identity(kDialedPs, kPsAddress), int port = kPsPort, uint64_t number = 5) {
    for (const std::string& message : acceptor.Welcome(ps, port, number)) {
      EXPECT_LE(message.size(), kLargestHandshakeMessage);
      EXPECT_EQ(dialer.OnMessage(message), "");
    }
  }
  DialerHandshake dialer;
  AcceptorHandshake acceptor;
};

TEST(HandshakeTest, BothSidesKnowEachOtherAndTheKeys) {
  Handshake both;
  both.Prove();
  EXPECT_TRUE(both.acceptor.proved());
  EXPECT_FALSE(both.dialer.done());
  both.Welcome();
  ASSERT_TRUE(both.dialer.done());
  EXPECT_EQ(both.acceptor.role(), StreamRole::kControl);
  EXPECT_EQ(both.acceptor.peer().task, kDialingWorker);
  EXPECT_EQ(both.acceptor.peer().incarnation, 7u);
  EXPECT_EQ(both.acceptor.peer().cluster, "{}");
  EXPECT_EQ(both.dialer.peer().task, kDialedPs);
  EXPECT_EQ(both.dialer.peer().address, kPsAddress);
  EXPECT_EQ(both.dialer.peer().cluster, "{}");
  EXPECT_EQ(both.dialer.connection().number, 5u);
  EXPECT_EQ(both.dialer.connection().key.size(), 32u);
  EXPECT_EQ(both.dialer.connection().key, both.acceptor.connection().key);
  EXPECT_EQ(both.dialer.keys().send, both.acceptor.keys().receive);
  EXPECT_EQ(both.dialer.keys().receive, both.acceptor.keys().send);
  EXPECT_NE(both.dialer.keys().send, both.dialer.keys().receive);
  Handshake again;
  again.Prove();
  again.Welcome();
  EXPECT_NE(again.dialer.connection().key, both.dialer.connection().key);
}

TEST(HandshakeTest, ALargeClusterSpecFollowsTheWelcome) {
  TaskIdentity ps = Identity(kDialedPs, kPsAddress);
  for (int i = 0; i < 3000; ++i) ps.cluster += std::to_string(i);
  Handshake both;
  both.Prove();
  EXPECT_EQ(both.acceptor.peer().cluster, "");
  std::vector<std::string> messages = both.acceptor.Welcome(ps, kPsPort, 1);
  EXPECT_GT(messages.size(), 2u);
  for (const std::string& message : messages) both.dialer.OnMessage(message);
  ASSERT_TRUE(both.dialer.done());
  EXPECT_EQ(both.dialer.peer().cluster, ps.cluster);
  Handshake changed;
  changed.Prove();
  messages = changed.acceptor.Welcome(ps, kPsPort, 1);
  messages.back().back() = 'x';
  const auto read = [&] {
    for (const std::string& message : messages) changed.dialer.OnMessage(message);
  };
  EXPECT_THAT(ErrorOf(read), HasSubstr("another hash"));
  EXPECT_THAT(ErrorOf([&] { changed.dialer.OnMessage(messages.back()); }), HasSubstr("DataLoss"));
}

TEST(HandshakeTest, AnotherTokenIsRefusedOnBothSides) {
  Handshake both;
  AcceptorHandshake other("another token of the tests", NoConnection);
  const std::string proof = both.dialer.OnMessage(other.OnMessage(both.dialer.hello()));
  EXPECT_THAT(ErrorOf([&] { other.OnMessage(proof); }),
              AllOf(HasSubstr("PermissionDenied"), HasSubstr(kDialingWorker), HasSubstr("COHORT_TOKEN_FILE")));
  EXPECT_FALSE(other.proved());
  // An acceptor without the token that does not check the dialer's proof.
  Handshake first;
  first.Prove();
  const std::string welcome = first.acceptor.Welcome(Identity(kDialedPs, kPsAddress), kPsPort, 1).front();
  EXPECT_THAT(ErrorOf([&] { both.dialer.OnMessage(welcome); }),
              AllOf(HasSubstr("PermissionDenied"), HasSubstr(kDialedPs), HasSubstr(kPsAddress)));
}

TEST(HandshakeTest, TheAcceptorSaysNothingAboutItselfBeforeTheProof) {
  Handshake both;
  const std::string answer = both.acceptor.OnMessage(both.dialer.hello());
  EXPECT_EQ(answer.size(), 18u);  // type, length, and 16 random bytes
  Handshake again;
  EXPECT_NE(again.acceptor.OnMessage(both.dialer.hello()).substr(2), answer.substr(2));
  // A wrong proof is answered with the name that the peer has given, and nothing else.
  const std::string refusal = ErrorOf([&] { both.acceptor.OnMessage(std::string("\x03") + std::string(32, 'p')); });
  EXPECT_THAT(refusal, AllOf(HasSubstr(kDialingWorker), ::testing::Not(HasSubstr(kDialedPs))));
}

// A process without the token stands between a worker and other tasks, as after it has taken the port of a dead ps.
TEST(HandshakeTest, AHelloThatIsPassedOnToAnotherTaskIsRefused) {
  Handshake relayed(kDialedPs);
  relayed.Prove();
  EXPECT_THAT(ErrorOf([&] { relayed.acceptor.Welcome(Identity(kOtherWorker, "127.0.0.1:3333"), 3333, 1); }),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr(kDialedPs), HasSubstr(kOtherWorker)));
  // A client does not know which task it will find. Then the address tells.
  Handshake client("", Identity("/job:client/replica:0/task:9"));
  client.Prove();
  EXPECT_THAT(ErrorOf([&] { client.acceptor.Welcome(Identity(kOtherWorker, "127.0.0.1:3333"), 3333, 1); }),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr(kPsAddress), HasSubstr("port 3333")));
  // The same name in another job of the same user, with the same token.
  Handshake other_job(kDialedPs);
  other_job.Prove();
  EXPECT_THAT(ErrorOf([&] { other_job.acceptor.Welcome(Identity(kDialedPs, "127.0.0.1:3333"), 3333, 1); }),
              HasSubstr("FailedPrecondition"));
  // A task that listens on another port than the one in the cluster spec (--bind) is the right one at both.
  for (const char* dialed : {"host:2222", "127.0.0.1:3333"}) {
    Handshake bound(kDialedPs, Identity(kDialingWorker), dialed);
    bound.Prove();
    bound.Welcome(Identity(kDialedPs, "host:2222"), 3333);
    EXPECT_TRUE(bound.dialer.done());
  }
}

TEST(HandshakeTest, NoByteOfAMessageCanBeChanged) {
  const std::string hello = Handshake().dialer.hello();
  for (size_t at = 0; at < hello.size(); ++at) {
    Handshake both;
    std::string changed = both.dialer.hello();
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::string nonce;
    const std::string error = ErrorOf([&] {
      nonce = both.acceptor.OnMessage(changed);
      both.acceptor.OnMessage(both.dialer.OnMessage(nonce));
    });
    EXPECT_NE(error, "no error") << "byte " << at << " of the hello";
    EXPECT_FALSE(both.acceptor.proved()) << at;
  }
  for (size_t at = 2; at < 18; ++at) {
    Handshake both;
    std::string nonce = both.acceptor.OnMessage(both.dialer.hello());
    nonce[at] = static_cast<char>(nonce[at] ^ 1);
    EXPECT_THAT(ErrorOf([&] { both.acceptor.OnMessage(both.dialer.OnMessage(nonce)); }), HasSubstr("PermissionDenied"));
  }
  Handshake first;
  first.Prove();
  const size_t size = first.acceptor.Welcome(Identity(kDialedPs, kPsAddress), kPsPort, 1).front().size();
  for (size_t at = 0; at < size; ++at) {
    Handshake both;
    both.Prove();
    std::string welcome = both.acceptor.Welcome(Identity(kDialedPs, kPsAddress), kPsPort, 1).front();
    ASSERT_EQ(welcome.size(), size);
    welcome[at] = static_cast<char>(welcome[at] ^ 1);
    EXPECT_NE(ErrorOf([&] { both.dialer.OnMessage(welcome); }), "no error") << "byte " << at << " of the welcome";
    EXPECT_FALSE(both.dialer.done());
  }
}

TEST(HandshakeTest, WhatWasHeardCannotBeSentAgain) {
  Handshake heard;
  const std::string proof = heard.dialer.OnMessage(heard.acceptor.OnMessage(heard.dialer.hello()));
  heard.acceptor.OnMessage(proof);
  heard.Welcome();
  AcceptorHandshake again(kHandshakeToken, NoConnection);
  again.OnMessage(heard.dialer.hello());
  EXPECT_THAT(ErrorOf([&] { again.OnMessage(proof); }), HasSubstr("PermissionDenied"));
  // Nor can it be sent back to the side that has said it.
  AcceptorHandshake mirror(kHandshakeToken, NoConnection);
  EXPECT_THAT(ErrorOf([&] { mirror.OnMessage(proof); }), HasSubstr("DataLoss"));
}

class BulkHandshakeTest : public ::testing::Test {
 protected:
  BulkHandshakeTest() {
    control_.Prove();
    control_.Welcome();
  }
  DialerHandshake Dialer(const ConnectionSecret& secret) { return DialerHandshake(secret, control_.dialer.peer()); }
  AcceptorHandshake Acceptor() {
    return AcceptorHandshake(kHandshakeToken, [this](uint64_t number) {
      return number == 5 ? std::optional(control_.acceptor.connection()) : std::nullopt;
    });
  }
  static std::string Refusal(DialerHandshake dialer, AcceptorHandshake acceptor) {
    return ErrorOf([&] { acceptor.OnMessage(dialer.OnMessage(acceptor.OnMessage(dialer.hello()))); });
  }
  Handshake control_;
};

TEST_F(BulkHandshakeTest, BelongsToItsConnection) {
  DialerHandshake dialer = Dialer(control_.dialer.connection());
  AcceptorHandshake acceptor = Acceptor();
  EXPECT_EQ(acceptor.OnMessage(dialer.OnMessage(acceptor.OnMessage(dialer.hello()))), "");
  ASSERT_TRUE(acceptor.proved());
  EXPECT_EQ(acceptor.role(), StreamRole::kBulk);
  EXPECT_EQ(acceptor.connection().number, 5u);
  EXPECT_EQ(dialer.OnMessage(acceptor.WelcomeBulk()), "");
  ASSERT_TRUE(dialer.done());
  EXPECT_EQ(dialer.keys().send, acceptor.keys().receive);
  EXPECT_EQ(dialer.keys().receive, acceptor.keys().send);
  EXPECT_NE(dialer.keys().send, control_.dialer.keys().send);
}

TEST_F(BulkHandshakeTest, AWrongKeyAndAnUnknownNumberLookTheSame) {
  ConnectionSecret wrong_key = control_.dialer.connection();
  wrong_key.key[0] = static_cast<char>(wrong_key.key[0] ^ 1);
  ConnectionSecret wrong_number = control_.dialer.connection();
  wrong_number.number = 6;
  ConnectionSecret token_as_key{5, kHandshakeToken};
  const std::string error = Refusal(Dialer(wrong_key), Acceptor());
  EXPECT_THAT(error, HasSubstr("PermissionDenied"));
  EXPECT_EQ(Refusal(Dialer(wrong_number), Acceptor()), error);
  EXPECT_EQ(Refusal(Dialer(token_as_key), Acceptor()), error);
  EXPECT_EQ(Acceptor().OnMessage(Dialer(wrong_number).hello()).size(), 18u);
}

TEST_F(BulkHandshakeTest, CannotBeSentAgain) {
  DialerHandshake dialer = Dialer(control_.dialer.connection());
  AcceptorHandshake acceptor = Acceptor();
  const std::string proof = dialer.OnMessage(acceptor.OnMessage(dialer.hello()));
  acceptor.OnMessage(proof);
  ASSERT_TRUE(acceptor.proved());
  AcceptorHandshake again = Acceptor();
  again.OnMessage(dialer.hello());
  EXPECT_THAT(ErrorOf([&] { again.OnMessage(proof); }), HasSubstr("PermissionDenied"));
}

TEST(HandshakeTest, ARefusalReachesTheDialerWithItsCode) {
  DialerHandshake dialer(kHandshakeToken, Identity(kDialingWorker), kDialedPs, kPsAddress);
  const std::string refusal = EncodeRefusal(Status(Code::kResourceExhausted, "too many " + std::string(9000, 'x')));
  EXPECT_LE(refusal.size(), kLargestHandshakeMessage);
  EXPECT_THAT(ErrorOf([&] { dialer.OnMessage(refusal); }),
              AllOf(HasSubstr("ResourceExhausted: too many x"), HasSubstr("refused by /job:ps/replica:0/task:0")));
}

TEST(HandshakeTest, MessagesThatAreNotTheNextOnesAreDamage) {
  const auto acceptor_error = [](const std::string& message) {
    AcceptorHandshake acceptor(kHandshakeToken, NoConnection);
    return ErrorOf([&] { acceptor.OnMessage(message); });
  };
  const std::string hello = Handshake().dialer.hello();
  for (size_t size = 0; size < hello.size(); ++size) {
    EXPECT_THAT(acceptor_error(hello.substr(0, size)), HasSubstr("DataLoss")) << size;
  }
  EXPECT_THAT(acceptor_error(hello + "x"), HasSubstr("DataLoss"));
  std::string other = hello;
  other[1] = static_cast<char>(other[1] + 1);
  EXPECT_THAT(acceptor_error(other), HasSubstr("another protocol"));
  EXPECT_THAT(
      ErrorOf([] { DialerHandshake(kHandshakeToken, Identity(kDialingWorker), std::string(5000, 'x'), kPsAddress); }),
      AllOf(HasSubstr("InvalidArgument"), HasSubstr("4096")));
}

TEST(HandshakeTest, AShortTokenIsRefusedUnlessTheUserInsists) {
  EXPECT_EQ(ErrorOf([] { CheckTokenLength(std::string(16, 'x'), false); }), "no error");
  EXPECT_EQ(ErrorOf([] { CheckTokenLength("short", true); }), "no error");
  EXPECT_THAT(ErrorOf([] { CheckTokenLength(std::string(15, 'x'), false); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("at least 16"), HasSubstr("got 15"),
                    HasSubstr("COHORT_ALLOW_SHORT_TOKEN=1")));
  setenv("COHORT_ALLOW_SHORT_TOKEN", "1", 1);
  EXPECT_EQ(ErrorOf([] { CheckTokenLength("short", false); }), "no error");
  unsetenv("COHORT_ALLOW_SHORT_TOKEN");
}

}  // namespace
}  // namespace cohort
