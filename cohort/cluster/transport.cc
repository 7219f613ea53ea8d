#include "cohort/cluster/transport.h"

#include <bit>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

struct Protocol {
  const char* name;
  std::unique_ptr<Transport> (*make)(TransportHandler& handler, const TransportOptions& options);
};
constexpr Protocol kProtocols[] = {{"grpc", MakeGrpcTransport}, {"in_process", MakeInProcessTransport}};

// Returns the bytes of a number in the form of WireWriter::Varint.
size_t VarintSize(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

const Protocol& FindProtocol(const std::string& name) {
  std::string known;
  for (const Protocol& protocol : kProtocols) {
    if (name == protocol.name) return protocol;
    known += (known.empty() ? "" : ", ") + std::string(protocol.name);
  }
  throw InvalidArgumentError(StrCat("[transport] unknown protocol '", name, "'; expected one of: ", known));
}

}  // namespace

std::vector<std::string> TransportProtocols() {
  std::vector<std::string> names;
  for (const Protocol& protocol : kProtocols) names.emplace_back(protocol.name);
  return names;
}

void CheckTransportProtocol(const std::string& protocol) { FindProtocol(protocol); }

std::unique_ptr<Transport> MakeTransport(const std::string& protocol, TransportHandler& handler,
                                         const TransportOptions& options) {
  return FindProtocol(protocol).make(handler, options);
}

void CheckCanTravel(const Message& message) {
  if (message.kind >= kReservedKind) {
    throw InvalidArgumentError(
        StrCat("[transport] expected a kind of message below ", kReservedKind, "; got ", message.kind));
  }
  for (const Tensor& tensor : message.tensors) {
    if (tensor.defined() && !IsHandle(tensor.dtype()) && tensor.space().is_host()) continue;
    throw InvalidArgumentError(
        StrCat("[transport] expected tensors in host memory to send; got ",
               !tensor.defined() ? "an undefined one" : StrCat(tensor.dtype(), tensor.shape(), " elsewhere"),
               " in a message of kind ", message.kind));
  }
}

size_t MaxEncodedSize(const Message& message) {
  // 8 bytes are for the type of the frame, the number of messages in it, and the kind.
  size_t bytes = 8 + VarintSize(message.tensors.size()) + VarintSize(message.header.size()) + message.header.size();
  for (const Tensor& tensor : message.tensors) {
    size_t content = tensor.bytes();
    if (tensor.dtype() == DType::kString) {
      for (const std::string& text : tensor.values<std::string>()) content += VarintSize(text.size()) + text.size();
    }
    bytes += 3 + VarintSize(content) + content;  // with the dtype and the rank
    for (const int64_t dim : tensor.shape().dims()) bytes += VarintSize(static_cast<uint64_t>(dim));
  }
  return bytes;
}

void CheckIsSmall(const Message& message) {
  CheckCanTravel(message);
  if (const size_t size = MaxEncodedSize(message); size >= kSmallMessage) {
    throw InvalidArgumentError(StrCat("[transport] expected a message of fewer than ", kSmallMessage,
                                      " bytes to send after all others; got up to ", size, " bytes of kind ",
                                      message.kind));
  }
}

Status LostPeer(const TaskIdentity& peer, const std::string& seen) {
  return Status(Code::kUnavailable, StrCat("[transport] lost ", peer.task,
                                           peer.address.empty() ? "" : " (" + peer.address + ")", ": ", seen));
}

DeadlineExceededError NoAnswer(const std::string& expected_task, const std::string& address,
                               std::chrono::steady_clock::duration waited) {
  return DeadlineExceededError(StrCat(
      "[transport] ", expected_task.empty() ? "the task" : expected_task, " at ", address, " has not answered within ",
      static_cast<double>(std::chrono::ceil<std::chrono::milliseconds>(waited).count()) / 1000.0,
      " s (stopped, or something else listens there)"));
}

}  // namespace cohort
