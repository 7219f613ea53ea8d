// Damaged bytes: whatever a peer sends, a decoder gives a value or throws a cohort::Error, and takes no more memory
// than the bytes that are there explain.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "cohort/cluster/grpc/bulk.h"
#include "cohort/cluster/handshake.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"

namespace cohort {
namespace {

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::ByteBuffer Buffer(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::vector<Message> SomeMessages() {
  return {{3, "header", {Tensor::Vector<float>({1, 2, 3}), Tensor::Scalar("text"), Tensor::Scalar(int64_t{5})}},
          {4, "", {Tensor::Vector<std::string>({"a", "", "bcd"}), Tensor::Zeros(DType::kBfloat16, Shape{2, 0})}}};
}

// One valid input and what reads it. `total`: whether every prefix is damaged.
struct Case {
  std::string bytes;
  std::function<void(const std::string&)> decode;
};

// The frames of a bulk stream, each with its length before it, so that damage may also shift them.
void DecodeBulk(const std::string& bytes) {
  BulkReceiver receiver;
  WireReader in(bytes);
  bool complete = false;
  while (!in.AtEnd()) {
    complete = receiver.Add(Buffer(in.View()));
    if (complete) receiver.Take();
  }
  if (!complete) throw DataLossError("the message is not complete");
}

std::string BulkBytes() {
  BulkSender sender(SomeMessages()[0]);
  WireWriter out;
  while (!sender.done()) out.String(Bytes(sender.Next(9)));
  return out.Take();
}

Message WithHeader(MessageKind kind, const std::string& header, size_t tensors = 0) {
  return {static_cast<uint16_t>(kind), header, std::vector<Tensor>(tensors, Tensor::Scalar(1.0f))};
}

ExecutableSpec SomeSpec() {
  RegisterOps();
  auto graph = std::make_unique<Graph>();
  ops::Const(*graph, 1.0f);
  ExecutableSpec spec;
  spec.key = {77, 3};
  spec.tasks = {"/job:a/replica:0/task:0", "/job:b/replica:0/task:0"};
  spec.edges = {{0, 1, "x:0"}, {1, 0, "y:0"}};
  spec.num_args = 2;
  spec.partitions.push_back({"/job:a/replica:0/task:0/device:CPU:0", std::move(graph)});
  return spec;
}

// Adds the messages of a handshake. Each is read by a side that has come so far.
void AddHandshakes(std::map<std::string, Case>* cases) {
  static const char* const kToken = "a token of the tests";
  const TaskIdentity mine = testing::Identity("/job:worker/replica:0/task:0");
  const auto dialer = std::make_shared<DialerHandshake>(kToken, mine, "", "127.0.0.1:2222");
  const auto acceptor = std::make_shared<AcceptorHandshake>(kToken, [](uint64_t) { return std::nullopt; });
  (*cases)["hello"] = {dialer->hello(),
                       [fresh = *acceptor](const std::string& bytes) { AcceptorHandshake(fresh).OnMessage(bytes); }};
  const std::string nonce = acceptor->OnMessage(dialer->hello());
  (*cases)["nonce"] = {nonce,
                       [before = *dialer](const std::string& bytes) { DialerHandshake(before).OnMessage(bytes); }};
  (*cases)["refusal"] = {EncodeRefusal(Status(Code::kAborted, "why")), [before = *dialer](const std::string& bytes) {
                           try {
                             DialerHandshake(before).OnMessage(bytes);
                           } catch (const Error& e) {
                             if (e.code() != Code::kAborted) throw;
                           }  // else it is the whole refusal
                         }};
}

std::map<std::string, Case> Cases() {
  std::map<std::string, Case> cases;
  AddHandshakes(&cases);
  cases["messages frame"] = {Bytes(EncodeMessages(SomeMessages())), [](const std::string& bytes) {
                               const grpc::ByteBuffer buffer = Buffer(bytes);
                               const FrameView frame(buffer);
                               if (frame.type() != FrameType::kMessages) throw DataLossError("another type");
                               DecodeMessages(frame.payload());
                             }};
  cases["bulk stream"] = {BulkBytes(), DecodeBulk};
  DeviceAttributes device;
  device.name = DeviceName::Parse("/job:ps/replica:0/task:0/device:CPU:0");
  device.incarnation = 99;
  device.memory_limit = 1 << 30;
  const StepRef ref{{5, 6}, 7};
  const auto header = [](const Message& message) { return message.header; };
  cases["list devices"] = {header(EncodeListDevices(300)), [](const std::string& bytes) {
                             DecodeListDevices(WithHeader(MessageKind::kListDevices, bytes));
                           }};
  cases["devices"] = {header(EncodeDevices(1, {device, device})),
                      [](const std::string& bytes) { DecodeDevices(WithHeader(MessageKind::kDevices, bytes)); }};
  cases["register"] = {header(EncodeRegister(1, SomeSpec())),
                       [](const std::string& bytes) { DecodeRegister(WithHeader(MessageKind::kRegister, bytes)); }};
  cases["registered"] = {header(EncodeRegistered(1, Status(Code::kAborted, "why"))), [](const std::string& bytes) {
                           DecodeRegistered(WithHeader(MessageKind::kRegistered, bytes));
                         }};
  cases["start step"] = {header(EncodeStartStep(ref, {7, {9, 5, 3}}, {})),
                         [](const std::string& bytes) { DecodeStartStep(WithHeader(MessageKind::kStartStep, bytes)); }};
  const StepStats stats{{{"/job:ps/replica:0/task:0/device:CPU:0", {{"b", "Add", {"a"}, "", 1, 2, 3, 4}}, 5}}};
  cases["step done"] = {header(EncodeStepDone(ref, Status(Code::kAborted, "why"), {}, stats)),
                        [](const std::string& bytes) { DecodeStepDone(WithHeader(MessageKind::kStepDone, bytes)); }};
  cases["values"] = {header(EncodeValues(ref, {{3, Tensor::Scalar(1.0f)}, {4, Tensor::Scalar(1.0f)}})),
                     [](const std::string& bytes) { DecodeValues(WithHeader(MessageKind::kValues, bytes, 2)); }};
  cases["cancel step"] = {header(EncodeCancelStep(ref, Status(Code::kAborted, "why"))), [](const std::string& bytes) {
                            DecodeCancelStep(WithHeader(MessageKind::kCancelStep, bytes));
                          }};
  cases["close session"] = {header(EncodeCloseSession(5)), [](const std::string& bytes) {
                              DecodeCloseSession(WithHeader(MessageKind::kCloseSession, bytes));
                            }};
  cases["reset container"] = {header(EncodeResetContainer("box")), [](const std::string& bytes) {
                                DecodeResetContainer(WithHeader(MessageKind::kResetContainer, bytes));
                              }};
  return cases;
}

int64_t HostBytes() {
  const AllocatorStats stats = HostAllocatorStats();
  return stats.bytes_in_use + stats.bytes_cached;
}

void ExpectBoundedMemory(const std::string& what, int64_t before) {
  EXPECT_LE(HostBytes(), before + (64 << 20)) << what;
}

TEST(WireDamageTest, EveryTruncationIsDataLoss) {
  const int64_t before = HostBytes();  // of other tests in this process
  for (const auto& [name, a_case] : Cases()) {
    EXPECT_NO_THROW(a_case.decode(a_case.bytes)) << name;
    for (size_t size = 0; size < a_case.bytes.size(); ++size) {
      EXPECT_THROW(a_case.decode(a_case.bytes.substr(0, size)), DataLossError) << name << " cut at " << size;
    }
    EXPECT_THROW(a_case.decode(a_case.bytes + '\x01'), DataLossError) << name << " with a byte too many";
    ExpectBoundedMemory(name, before);
  }
}

std::string Damaged(std::string bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size();
  switch (random() % 5) {
    case 0: bytes[at] = static_cast<char>(random()); break;
    case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
    case 2: bytes.insert(at, std::string(1 + random() % 9, '\xff')); break;  // long varints
    case 3: bytes.erase(at, 1 + random() % 4); break;
    default: bytes.replace(at, 1, "\xff\xff\xff\xff\x7f"); break;  // large counts
  }
  return bytes;
}

TEST(WireDamageTest, RandomDamageGivesAValueOrAnError) {
  const int64_t before = HostBytes();
  std::mt19937_64 random(20240229);
  for (const auto& [name, a_case] : Cases()) {
    for (int i = 0; i < 10000; ++i) {
      std::string bytes = Damaged(a_case.bytes, random);
      if (i % 4 == 0 && !bytes.empty()) bytes = Damaged(bytes, random);
      try {
        a_case.decode(bytes);
      } catch (const Error&) {
        // DataLoss, or what the graph's and the device name's own readers throw
      }
    }
    ExpectBoundedMemory(name, before);
  }
}

TEST(WireDamageTest, CountsDoNotAllocateBeforeTheBytesAreThere) {
  // 2^39 strings, and a tensor of 2^39 floats, in a few bytes.
  WireWriter strings;
  strings.Varint(1);
  strings.Varint(1);
  strings.String("");
  strings.Varint(1);
  strings.Varint(static_cast<uint64_t>(DType::kString));
  strings.Varint(1);
  strings.Varint(uint64_t{1} << 39);
  strings.String("");
  EXPECT_THROW(DecodeMessages(strings.view()), DataLossError);
  WireWriter head;
  head.Varint(1);
  head.String("");
  head.Varint(1);
  head.Varint(static_cast<uint64_t>(DType::kFloat32));
  head.Varint(1);
  head.Varint(uint64_t{1} << 39);
  WireWriter begin;
  begin.Varint(head.view().size());
  const std::string payload = std::string(begin.view()) + std::string(head.view());
  BulkReceiver receiver;
  EXPECT_THROW(receiver.Add(EncodeFrame(FrameType::kBulkBegin, payload)), DataLossError);
  // Dimensions whose product leaves 64 bits.
  WireWriter product;
  product.Varint(static_cast<uint64_t>(DType::kFloat32));
  product.Varint(2);
  product.Varint(uint64_t{1} << 39);
  product.Varint(uint64_t{1} << 39);
  WireReader in(product.view());
  EXPECT_THROW(GetMeta(in), DataLossError);
}

}  // namespace
}  // namespace cohort
