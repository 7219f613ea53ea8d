// What every transport keeps, whatever carries it: transport.h, run for each implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/cluster/testing/transport_pair.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/testing/held_resources.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using testing::Certificates;
using ::testing::HasSubstr;
using testing::Identity;
using testing::Pair;
using testing::RecordingHandler;
using testing::Soon;
using testing::Variant;
using testing::Variants;

class TransportContract : public ::testing::TestWithParam<Variant> {
 protected:
  static TransportOptions Options() {
    TransportOptions options;
    options.token = "a token of the tests";
    options.network_threads = GetParam().network_threads;
    options.share_memory = GetParam().share_memory;
    return options;
  }
  // Returns a transport for the ps.
  std::unique_ptr<Transport> Make(TransportHandler& handler, const TransportOptions& options = Options(),
                                  const TlsOptions& files = Certificates().ps) {
    TransportOptions complete = options;
    if (GetParam().tls) complete.tls = files;
    return MakeTransport(GetParam().protocol, handler, complete);
  }
  std::unique_ptr<Transport> MakeWorker(TransportHandler& handler, const TransportOptions& options = Options()) {
    return Make(handler, options, Certificates().worker);
  }
};

class TransportPair : public TransportContract {
 protected:
  RecordingHandler at_ps_, at_worker_;
  Pair pair_{Make(at_ps_), at_ps_, MakeWorker(at_worker_)};
};

Tensor Pattern(int64_t bytes, uint8_t seed = 1) {
  Tensor tensor(DType::kUint8, Shape{bytes});
  for (int64_t i = 0; i < bytes; ++i) tensor.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + (i >> 10) + seed);
  return tensor;
}

void ExpectSame(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  if (want.dtype() == DType::kString) {
    EXPECT_EQ(got.ToVector<std::string>(), want.ToVector<std::string>());
  } else if (want.bytes() > 0) {
    EXPECT_EQ(std::memcmp(got.raw_data(), want.raw_data(), want.bytes()), 0);
  }
}

TEST_P(TransportPair, BothSidesKnowEachOther) {
  EXPECT_EQ(pair_.dialed()->peer().task, "/job:ps/replica:0/task:0");
  EXPECT_EQ(pair_.dialed()->peer().address, pair_.address());
  EXPECT_EQ(pair_.accepted()->peer().task, "/job:worker/replica:0/task:0");
  EXPECT_EQ(pair_.accepted()->peer().incarnation, 7u);
  EXPECT_EQ(pair_.accepted()->peer().cluster, "{}");
  EXPECT_FALSE(pair_.dialed()->closed());
}

TEST_P(TransportPair, SmallMessagesArriveInOrder) {
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i) pair_.dialed()->Send({5, std::to_string(i), {Tensor::Scalar(i)}});
  const std::vector<Message> got = at_ps_.Messages(kCount);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(got[static_cast<size_t>(i)].header, std::to_string(i));
    ASSERT_EQ(got[static_cast<size_t>(i)].tensors.at(0).scalar<int>(), i);
    ASSERT_EQ(got[static_cast<size_t>(i)].kind, 5);
  }
}

TEST_P(TransportPair, EverySizeArrivesWhole) {
  const int64_t kKiB = 1024;
  size_t received = 0;
  for (const int64_t size : {int64_t{0}, int64_t{1}, 15 * kKiB, 16 * kKiB, kKiB * kKiB, 40 * kKiB * kKiB}) {
    for (const auto& [from, to] : {std::pair(pair_.dialed(), &at_ps_), std::pair(pair_.accepted(), &at_worker_)}) {
      const Tensor tensor = Pattern(size);
      from->Send({1, "size", {tensor}});
      const Message got = to->Messages(received + 1).back();
      EXPECT_EQ(got.header, "size");
      ASSERT_EQ(got.tensors.size(), 1u);
      ExpectSame(got.tensors[0], tensor);
    }
    ++received;
  }
}

TEST_P(TransportPair, BytesOfMessagesAreCounted) {
  EXPECT_EQ(pair_.dialed()->bytes_sent(), 0);
  EXPECT_EQ(pair_.accepted()->bytes_received(), 0);
  int64_t sent = 0;
  size_t received = 0;
  for (const int64_t size : {int64_t{10}, int64_t{100'000}, int64_t{3'000'000}}) {
    pair_.dialed()->Send({1, "size", {Pattern(size)}});
    at_ps_.Messages(++received);
    sent += size;
    EXPECT_GE(pair_.accepted()->bytes_received(), sent);
    EXPECT_LT(pair_.accepted()->bytes_received(), sent + 10'000);
    EXPECT_EQ(pair_.dialed()->bytes_sent(), pair_.accepted()->bytes_received());
  }
}

TEST_P(TransportPair, EveryDtypeAndShapeArrives) {
  std::vector<Tensor> tensors = {Tensor::Scalar(1.5f),
                                 Tensor::Scalar(-2.5),
                                 Tensor::Scalar(int32_t{-3}),
                                 Tensor::Scalar(uint8_t{200}),
                                 Tensor::Scalar(int64_t{1} << 40),
                                 Tensor::Scalar(true),
                                 Tensor::Scalar(bfloat16(0.5f)),
                                 Tensor::Scalar("text"),
                                 Tensor::Scalar(""),
                                 Tensor::Zeros(DType::kFloat32, Shape{0}),
                                 Tensor::Zeros(DType::kString, Shape{0, 3}),
                                 Tensor::Zeros(DType::kInt64, Shape{2, 0, 5}),
                                 Pattern(24).Reshaped(Shape{2, 3, 4}),
                                 Pattern(100).Slice(10, 30)};
  pair_.dialed()->Send({1, std::string("\0binary", 7), tensors});
  tensors.push_back(Pattern(100000));  // the same as bulk
  tensors.push_back(Tensor::Vector<std::string>({std::string(100000, 'x'), "", std::string("\0y", 2)}));
  tensors.push_back(Tensor::Zeros(DType::kFloat64, Shape{0}));
  pair_.dialed()->Send({1, std::string("\0binary", 7), tensors});
  std::vector<Message> got = at_ps_.Messages(2);
  // A small message and a large one may change places.
  if (got[0].tensors.size() > got[1].tensors.size()) std::swap(got[0], got[1]);
  for (size_t m = 0; m < 2; ++m) {
    EXPECT_EQ(got[m].header, std::string("\0binary", 7));
    ASSERT_EQ(got[m].tensors.size(), tensors.size() - (m == 0 ? 3 : 0));
    for (size_t i = 0; i < got[m].tensors.size(); ++i) ExpectSame(got[m].tensors[i], tensors[i]);
  }
}

TEST_P(TransportPair, EveryDtypeArrivesSmallAndAsBulk) {
  std::vector<Tensor> tensors;
  for (int32_t number = 0; number < 64; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!IsKnownDType(number) || dtype == DType::kInvalid || IsHandle(dtype)) continue;
    for (const int64_t elements : {1, 3, 20000}) {
      Tensor tensor = Tensor::Zeros(dtype, Shape{elements});
      auto* bytes = static_cast<uint8_t*>(tensor.raw_data());
      for (int64_t i = 0; i < elements; ++i) {
        if (dtype == DType::kString) {
          tensor.data<std::string>()[i] = std::to_string(i);
        } else if (dtype == DType::kBool) {
          tensor.data<bool>()[i] = i % 3 == 0;
        } else {
          std::memset(bytes + i * DTypeSize(dtype), static_cast<int>(i % 50), DTypeSize(dtype));
        }
      }
      tensors.push_back(tensor);
    }
  }
  ASSERT_GE(tensors.size(), 3u * 8);
  for (size_t i = 0; i < tensors.size(); ++i) {
    pair_.dialed()->Send({1, "", {tensors[i]}});
    ExpectSame(at_ps_.Messages(i + 1).back().tensors.at(0), tensors[i]);
  }
}

TEST_P(TransportPair, LargeHeadersAndManyTensorsArrive) {
  const std::string graph(9'000'000, 'g');
  pair_.dialed()->Send({2, graph, {}});
  EXPECT_TRUE(at_ps_.Messages(1)[0].header == graph);
  pair_.dialed()->Send({3, "", std::vector<Tensor>(30000, Tensor::Scalar(4.0f))});
  const Message many = at_ps_.Messages(2)[1];
  ASSERT_EQ(many.tensors.size(), 30000u);
  EXPECT_EQ(many.tensors.back().scalar<float>(), 4.0f);
}

TEST_P(TransportPair, SeveralMessagesInOneSendStayTogetherInOrder) {
  std::vector<Message> messages;
  for (uint16_t i = 0; i < 300; ++i) messages.push_back({i, std::string(10000, 'h'), {}});  // more than one frame takes
  pair_.dialed()->Send(std::move(messages));
  const std::vector<Message> got = at_ps_.Messages(300);
  for (uint16_t i = 0; i < 300; ++i) ASSERT_EQ(got[i].kind, i);
}

// Both ways at once, again and again: what is sent after all is handled behind the large and the small ones before it.
TEST_P(TransportPair, WhatIsSentAfterAllIsHandledAfterSmallAndLargeOnes) {
  constexpr int kRounds = 30;
  const Tensor large = Pattern(1 << 20);
  const auto ends = {std::pair(pair_.dialed(), &at_ps_), std::pair(pair_.accepted(), &at_worker_)};
  for (const auto& [from, to] : ends) from->SendAfterAll({9, "-1", {}});  // after nothing
  for (int round = 0; round < kRounds; ++round) {
    const std::string header = std::to_string(round);
    for (const auto& [from, to] : ends) {
      from->Send({1, header, {large}});
      from->Send({2, header, {Tensor::Scalar(round)}});
      from->Send({1, header, {large}});
      from->SendAfterAll({9, header, {Tensor::Scalar(round)}});
      if (round % 2 == 0) from->SendAfterAll({9, header, {Tensor::Scalar(round)}});  // right behind another
    }
  }
  for (const auto& [from, to] : ends) {
    const std::vector<Message> got = to->Messages(1 + kRounds * 4 + kRounds / 2);
    int handled = 0;
    int last = -1;
    for (const Message& message : got) {
      if (message.kind != 9) {
        ++handled;
        continue;
      }
      const int round = std::stoi(message.header);
      EXPECT_GE(round, last);
      EXPECT_GE(handled, 3 * (round + 1)) << "in round " << round;
      if (round >= 0) {
        EXPECT_EQ(message.tensors.at(0).scalar<int>(), round);
      }
      last = round;
    }
    EXPECT_EQ(last, kRounds - 1);
  }
}

TEST_P(TransportPair, OnlySmallMessagesAreSentAfterAll) {
  const std::string message = ErrorOf([&] { pair_.dialed()->SendAfterAll({3, "", {Pattern(16 * 1024)}}); });
  EXPECT_THAT(message, AllOf(HasSubstr("InvalidArgument"), HasSubstr("fewer than 16384 bytes"), HasSubstr("kind 3")));
  EXPECT_THAT(ErrorOf([&] {
                pair_.dialed()->Send({kReservedKind, "", {}});
              }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("got 65535")));
}

TEST_P(TransportPair, ManyThreadsSendBothWaysAtOnce) {
  constexpr uint16_t kThreads = 4;
  constexpr int kEach = 400;
  std::vector<std::thread> threads;
  for (uint16_t t = 0; t < 2 * kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto& connection = t % 2 == 0 ? pair_.dialed() : pair_.accepted();
      for (int i = 0; i < kEach; ++i) {
        connection->Send({t, std::to_string(i), {Pattern(i % 50 == 0 ? 40000 : 3)}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [handler, side] : {std::pair(&at_ps_, 0), std::pair(&at_worker_, 1)}) {
    std::map<uint16_t, int> next_small;
    std::map<uint16_t, int> next_large;
    for (const Message& message : handler->Messages(kThreads * kEach)) {
      ASSERT_EQ(message.kind % 2, side);
      const bool large = message.tensors.at(0).bytes() > 3;
      int& next = (large ? next_large : next_small)[message.kind];
      while (!large && next % 50 == 0) ++next;
      ASSERT_EQ(message.header, std::to_string(next)) << "of thread " << message.kind;
      next += large ? 50 : 1;
    }
  }
}

TEST_P(TransportPair, WhatCannotTravelIsRefusedByName) {
  EXPECT_THAT(ErrorOf([&] { pair_.dialed()->Send({9, "", {Tensor()}}); }), HasSubstr("kind 9"));
  pair_.dialed()->Send({1, "goes on", {}});
  EXPECT_EQ(at_ps_.Messages(1)[0].header, "goes on");
}

TEST_P(TransportPair, CloseIsSeenByBothSides) {
  pair_.dialed()->Send({1, "", {}});
  at_ps_.Messages(1);
  pair_.dialed()->Close(Status(Code::kAborted, "enough"));
  EXPECT_TRUE(pair_.dialed()->closed());
  const Status here = at_worker_.WhyClosed(pair_.dialed());
  EXPECT_EQ(here.code(), Code::kAborted);
  EXPECT_EQ(here.message(), "enough");
  const Status there = at_ps_.WhyClosed(pair_.accepted());
  EXPECT_EQ(there.code(), Code::kUnavailable);
  EXPECT_THAT(there.message(), HasSubstr("/job:worker/replica:0/task:0"));
  EXPECT_THAT(there.message(), HasSubstr("closed by the peer"));
  pair_.dialed()->Close(Status(Code::kAborted, "again"));
  pair_.dialed()->Send({1, "dropped", {}});
  pair_.accepted()->Send({1, "dropped", {}});
  pair_.worker().Shutdown();
  pair_.ps().Shutdown();
  EXPECT_EQ(at_ps_.message_count(), 1u);
}

TEST_P(TransportPair, CloseDropsWhatIsUnderWayAndLetsItsMemoryGo) {
  constexpr size_t kCount = 200;
  Tensor large = Pattern(1 << 20);
  for (size_t i = 0; i < kCount; ++i) pair_.dialed()->Send({1, "", {large}});
  pair_.dialed()->Close(Status(Code::kCancelled, "not needed any more"));
  EXPECT_EQ(at_worker_.WhyClosed(pair_.dialed()).code(), Code::kCancelled);
  EXPECT_EQ(at_ps_.WhyClosed(pair_.accepted()).code(), Code::kUnavailable);
  if (GetParam().protocol == "grpc") {  // in one process, what was sent is there
    EXPECT_LT(at_ps_.message_count(), kCount);
  } else {
    at_ps_.Forget();
  }
  pair_.worker().Shutdown();
  pair_.ps().Shutdown();
  // gRPC lets go of what it held on threads of its own.
  const auto deadline = Soon();
  while (!large.buffer()->IsUnique() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(large.buffer()->IsUnique());
}

TEST_P(TransportPair, APeerThatShutsDownIsLostByNameAndItsLastMessagesArrive) {
  for (int i = 0; i < 100; ++i) pair_.accepted()->Send({1, std::to_string(i), {}});
  pair_.ps().Shutdown("; who went before");
  const Status why = at_worker_.WhyClosed(pair_.dialed());
  EXPECT_EQ(why.code(), Code::kUnavailable);
  EXPECT_THAT(why.message(), AllOf(HasSubstr("/job:ps/replica:0/task:0 (" + pair_.address() + ")"),
                                   HasSubstr("this side shuts down; who went before")));
  EXPECT_EQ(at_ps_.WhyClosed(pair_.accepted()).code(), Code::kCancelled);
  EXPECT_EQ(at_worker_.Messages(100)[99].header, "99");
}

// A shutdown sends large messages for as long as the limit of silence, so the limit leaves time to a busy machine.
TEST_P(TransportContract, LargeMessagesArriveBeforeTheirSenderIsGone) {
  RecordingHandler at_ps, at_worker;
  TransportOptions options = Options();
  options.silence_limit = std::chrono::seconds(60);
  Pair pair(Make(at_ps, options), at_ps, MakeWorker(at_worker, options));
  constexpr size_t kCount = 20;
  const Tensor large = Pattern(4 << 20);
  for (size_t i = 0; i < kCount; ++i) pair.accepted()->Send({1, std::to_string(i), {large}});
  pair.ps().Shutdown();
  const Status why = at_worker.WhyClosed(pair.dialed());
  EXPECT_THAT(why.message(), HasSubstr("the connection was closed by the peer"));
  const std::vector<Message> messages = at_worker.Messages(kCount);
  EXPECT_EQ(messages.back().header, std::to_string(kCount - 1));
  ExpectSame(messages.back().tensors.at(0), large);
}

TEST_P(TransportPair, NoCallComesAfterShutdownWithMessagesInFlight) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> senders;
  for (const auto& connection : {pair_.dialed(), pair_.accepted()}) {
    senders.emplace_back([&stop, connection] {
      const Tensor large = Pattern(1 << 20);
      for (int i = 0; !stop; ++i) connection->Send({1, "", {i % 100 == 0 ? large : Tensor::Scalar(i)}});
    });
  }
  at_ps_.Messages(200);
  at_worker_.Messages(200);
  pair_.ps().Shutdown();
  at_ps_.Forbid();
  pair_.worker().Shutdown();
  at_worker_.Forbid();
  pair_.ps().Shutdown();
  stop = true;
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(at_ps_.closed_count(), 1u);
  EXPECT_EQ(at_worker_.closed_count(), 1u);
  EXPECT_TRUE(pair_.dialed()->closed());
}

INSTANTIATE_TEST_SUITE_P(All, TransportPair, ::testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TransportContract, AHandlerThatThrowsClosesTheConnection) {
  RecordingHandler at_ps, at_worker;
  at_ps.on_message = [](const auto&, const Message& message) {
    if (message.kind == 13) throw OutOfRangeError("unlucky");
  };
  Pair pair(Make(at_ps), at_ps, MakeWorker(at_worker));
  pair.dialed()->Send({13, "", {}});
  EXPECT_THAT(at_ps.WhyClosed(pair.accepted()).message(), HasSubstr("OutOfRange: unlucky"));
  EXPECT_EQ(at_worker.WhyClosed(pair.dialed()).code(), Code::kUnavailable);
}

TEST_P(TransportContract, AHandlerMayCloseItsConnection) {
  RecordingHandler at_ps, at_worker;
  at_ps.on_message = [](const auto& connection, const Message& message) {
    if (message.kind == 13) connection->Close(Status(Code::kAborted, "by the handler"));
  };
  Pair pair(Make(at_ps), at_ps, MakeWorker(at_worker));
  std::vector<Message> messages;
  for (uint16_t kind = 10; kind < 20; ++kind) messages.push_back({kind, "", {}});
  pair.dialed()->Send(std::move(messages));
  const Status why = at_ps.WhyClosed(pair.accepted());
  EXPECT_EQ(why.code(), Code::kAborted);
  EXPECT_EQ(why.message(), "by the handler");
  EXPECT_EQ(at_worker.WhyClosed(pair.dialed()).code(), Code::kUnavailable);
  EXPECT_EQ(at_ps.message_count(), 4u);  // 10 to 13, and none after Close
}

TEST_P(TransportContract, OnClosedComesAfterTheMessageThatIsBeingHandled) {
  RecordingHandler at_ps, at_worker;
  std::promise<void> handling;
  at_ps.on_message = [&](const auto& connection, const Message&) {
    handling.set_value();
    // Until the end is known here, where it can be: one thread alone learns of it afterwards.
    for (int i = 0; i < 300 && !connection->closed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  Pair pair(Make(at_ps), at_ps, MakeWorker(at_worker));
  pair.dialed()->Send({1, "bulk", {Pattern(50000)}});
  handling.get_future().wait();
  pair.dialed()->Close(Status(Code::kCancelled, "early"));
  EXPECT_FALSE(at_ps.WhyClosed(pair.accepted()).ok());  // the handler looks whether calls come after it
  EXPECT_EQ(at_ps.message_count(), 1u);
}

TEST_P(TransportContract, APeerThatComesAgainHasAnotherIncarnation) {
  RecordingHandler at_first, at_second, at_worker;
  auto first = Make(at_first);
  const int port = first->Listen("127.0.0.1:0");
  const std::string address = "127.0.0.1:" + std::to_string(port);
  TaskIdentity identity = Identity("/job:ps/replica:0/task:0", address);
  first->SetIdentity(identity);
  const auto worker = MakeWorker(at_worker);
  worker->SetIdentity(Identity("/job:worker/replica:0/task:0"));
  const auto before = worker->Dial(address, identity.task, Soon());
  first->Shutdown();
  EXPECT_EQ(at_worker.WhyClosed(before).code(), Code::kUnavailable);
  const auto second = Make(at_second);
  EXPECT_EQ(second->Listen(address), port);
  identity.incarnation = 8;
  second->SetIdentity(identity);
  const auto after = worker->Dial(address, identity.task, Soon());
  EXPECT_EQ(before->peer().incarnation, 7u);
  EXPECT_EQ(after->peer().incarnation, 8u);
  before->Send({1, "to nobody", {}});
  after->Send({1, "small", {}});
  after->Send({1, "bulk", {Pattern(100000)}});
  EXPECT_EQ(at_second.Messages(2).size(), 2u);
}

TEST_P(TransportContract, WhoListensAndDoesNotAnswerIsNamedAtTheDeadline) {
  RecordingHandler at_ps, at_worker;
  const auto ps = Make(at_ps);
  const std::string address = "127.0.0.1:" + std::to_string(ps->Listen("127.0.0.1:0"));  // and never knows who it is
  TransportOptions options = Options();
  const auto worker = MakeWorker(at_worker, options);
  worker->SetIdentity(Identity("/job:worker/replica:0/task:0"));
  const auto dial = [&](Transport& from, std::chrono::steady_clock::time_point deadline) {
    return ErrorOf([&] { from.Dial(address, "/job:ps/replica:0/task:0", deadline); });
  };
  const auto named = ::testing::AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("/job:ps/replica:0/task:0"),
                                      HasSubstr(address), HasSubstr("has not answered within "));
  EXPECT_THAT(dial(*worker, std::chrono::steady_clock::now() + std::chrono::milliseconds(100)), named);
  options.handshake_timeout = std::chrono::milliseconds(100);
  const auto hasty = MakeWorker(at_worker, options);
  hasty->SetIdentity(Identity("/job:worker/replica:0/task:0"));
  EXPECT_THAT(dial(*hasty, Soon()), named);
  std::string error;
  std::thread dialer([&] { error = dial(*worker, Soon()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that it mostly is under way
  worker->Shutdown();
  dialer.join();
  EXPECT_THAT(error, HasSubstr("Unavailable"));
}

TEST_P(TransportContract, StrangersAreRefusedByName) {
  RecordingHandler at_ps, at_worker;
  const auto ps = Make(at_ps);
  const std::string address = "127.0.0.1:" + std::to_string(ps->Listen("127.0.0.1:0"));
  ps->SetIdentity(Identity("/job:ps/replica:0/task:0", address));
  const auto dial = [&](const TransportOptions& options, const TaskIdentity& identity, const std::string& expected) {
    const auto worker = MakeWorker(at_worker, options);
    worker->SetIdentity(identity);
    return ErrorOf([&] { worker->Dial(address, expected, Soon()); });
  };
  const TaskIdentity mine = Identity("/job:worker/replica:0/task:0");
  TransportOptions other_token = Options();
  other_token.token = "a guess of the token";
  EXPECT_THAT(dial(other_token, mine, ""), ::testing::AllOf(HasSubstr("PermissionDenied"), HasSubstr("token")));
  TaskIdentity changed = mine;
  changed.protocol_version = 5;
  EXPECT_THAT(dial(Options(), changed, ""),
              ::testing::AllOf(HasSubstr("FailedPrecondition"), HasSubstr("version 4"), HasSubstr("version 5")));
  changed = mine;
  changed.op_fingerprint = 0x1234;
  EXPECT_THAT(dial(Options(), changed, ""),
              ::testing::AllOf(HasSubstr("FailedPrecondition"), HasSubstr("abcdef"), HasSubstr("1234")));
  EXPECT_THAT(dial(Options(), mine, "/job:ps/replica:0/task:1"),
              ::testing::AllOf(HasSubstr("FailedPrecondition"), HasSubstr("task:1"), HasSubstr("task:0")));
  EXPECT_EQ(dial(Options(), mine, "/job:ps/replica:0/task:0"), "no error");  // and goes on serving
}

TEST_P(TransportContract, NobodyListens) {
  RecordingHandler handler;
  const auto gone = Make(handler);
  const std::string address = "127.0.0.1:" + std::to_string(gone->Listen("127.0.0.1:0"));
  gone->Shutdown();
  const auto transport = MakeWorker(handler);
  transport->SetIdentity(Identity("/job:worker/replica:0/task:0"));
  EXPECT_THAT(ErrorOf([&] { transport->Dial(address, "", Soon()); }),
              ::testing::AllOf(HasSubstr("Unavailable"), HasSubstr(address)));
}

TEST_P(TransportContract, APortInUseIsNamed) {
  RecordingHandler handler;
  const auto first = Make(handler);
  const int port = first->Listen("127.0.0.1:0");
  const auto second = Make(handler);
  EXPECT_THAT(ErrorOf([&] { second->Listen("127.0.0.1:" + std::to_string(port)); }),
              ::testing::AllOf(HasSubstr("Unavailable"), HasSubstr(std::to_string(port)), HasSubstr("in use")));
  first->Shutdown();
  const auto third = Make(handler);
  EXPECT_EQ(third->Listen("127.0.0.1:" + std::to_string(port)), port);
}

TEST_P(TransportContract, APeerIsAnsweredOnceTheIdentityIsKnown) {
  RecordingHandler at_ps, at_worker;
  const auto ps = Make(at_ps);
  const std::string address = "127.0.0.1:" + std::to_string(ps->Listen("127.0.0.1:0"));
  const auto worker = MakeWorker(at_worker);
  worker->SetIdentity(Identity("/job:worker/replica:0/task:0"));
  std::shared_ptr<Connection> connection;
  std::thread dialer([&] { connection = worker->Dial(address, "", Soon()); });
  ps->SetIdentity(Identity("/job:ps/replica:0/task:0", address));
  dialer.join();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(connection->peer().address, address);
}

TEST_P(TransportContract, ManyConnectionsOfOnePeer) {
  RecordingHandler at_ps, at_worker;
  Pair pair(Make(at_ps), at_ps, MakeWorker(at_worker));
  const auto second = pair.worker().Dial(pair.address(), "", Soon());
  pair.dialed()->Close(Status(Code::kCancelled, "the first"));
  EXPECT_EQ(at_ps.WhyClosed(pair.accepted()).code(), Code::kUnavailable);
  second->Send({2, "over the second", {Pattern(50000)}});
  EXPECT_EQ(at_ps.Messages(1)[0].header, "over the second");
  EXPECT_FALSE(second->closed());
}

TEST_P(TransportContract, StartingAndStoppingLeavesNothingBehind) {
  int port = 0;
  const auto cycle = [&] {
    RecordingHandler at_ps, at_worker;
    const auto ps = Make(at_ps);
    port = ps->Listen("127.0.0.1:" + std::to_string(port));  // the same port each time
    const std::string address = "127.0.0.1:" + std::to_string(port);
    ps->SetIdentity(Identity("/job:ps/replica:0/task:0", address));
    const auto worker = MakeWorker(at_worker);
    worker->SetIdentity(Identity("/job:worker/replica:0/task:0"));
    const auto connection = worker->Dial(address, "", Soon());
    connection->Send({1, "", {Tensor::Scalar(1.0f)}});
    connection->Send({1, "", {Pattern(20000)}});
    at_ps.Messages(2);
    port % 2 == 0 ? ps->Shutdown() : worker->Shutdown();
  };
  for (int i = 0; i < 5; ++i) cycle();  // what gRPC keeps for ever is there now
  const testing::HeldResources before;
  for (int i = 0; i < 50; ++i) cycle();
  testing::ExpectNothingAdded(before);
}

INSTANTIATE_TEST_SUITE_P(All, TransportContract, ::testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cohort
