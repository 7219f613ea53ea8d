// Frames: what one gRPC message holds - a byte for the type, then the payload. docs/formats.md has the layout.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/transport.h"
#include "cohort/core/wire.h"

namespace cohort {

enum class FrameType : uint8_t {
  kHello = 1,    // payload: EncodeHello
  kProof = 2,    // payload: the dialer's proof; on a bulk stream, its ticket
  kWelcome = 3,  // payload: the connection's number (fixed 64)
  kRefused = 4,  // payload: code, message
  kHeartbeat = 5,
  kMessages = 6,   // whole small messages, one after another
  kBulkBegin = 7,  // of one large message: how long its head is, and the head's first bytes
  kBulkChunk = 8,  // its next bytes: the rest of the head, then the tensors'
  // The last of a stream. Payload on a control stream: whether there is one on the bulk stream too (varint, 0 or 1),
  // then why; on a bulk stream: none.
  kGoodbye = 9,
  kWindow = 10,        // payload: SendWindow::Offer
  kWindowAnswer = 11,  // to that: 1 where it is open now, else 0 (varint)
  kGivenBack = 12,     // how many pieces of the window have been taken out since the last such frame (varint)
  // The next bytes of one large message lie in the window. Payload, three varints: 1 + the length of the head in a
  // message's first chunk, else 0; the offset of the bytes in the window; the number of bytes.
  kWindowChunk = 13,
};
inline constexpr FrameType kLastFrameType = FrameType::kWindowChunk;

inline constexpr size_t kLargestChunk = 1 << 20;
// Of any frame: a peer that sends a larger one is cut off by gRPC.
inline constexpr size_t kLargestFrame = 4 << 20;

// A small message that its receiver handles once it has handled as many large messages of this connection. It travels
// in a kMessages frame with kind kReservedKind; its header then begins with that number and the message's own kind.
Message AfterBulk(Message message, uint64_t bulk_messages);
// Gives such a message its own kind and header back, and returns the number. Throws DataLossError.
uint64_t TakeAfterBulk(Message* message);

grpc::ByteBuffer EncodeFrame(FrameType type, std::string_view payload);
// All messages in one frame, in order.
grpc::ByteBuffer EncodeMessages(const std::vector<Message>& messages);
// Throws DataLossError for bytes that EncodeMessages does not make; allocates no more than the bytes that are there.
std::vector<Message> DecodeMessages(std::string_view payload);

// A received frame, without a copy where gRPC holds it in one piece. Throws DataLossError for no or an unknown type.
class FrameView {
 public:
  explicit FrameView(const grpc::ByteBuffer& buffer);
  FrameType type() const { return static_cast<FrameType>(*slice_.begin()); }
  std::string_view payload() const { return {reinterpret_cast<const char*>(slice_.begin()) + 1, slice_.size() - 1}; }

 private:
  grpc::Slice slice_;
};

// What stands before a tensor's bytes, in both kinds of messages.
struct TensorMeta {
  DType dtype = DType::kInvalid;
  Shape shape;
};
void PutMeta(WireWriter& out, const Tensor& tensor);
// Throws DataLossError for a dtype that cannot travel or a shape of 2^40 elements or more.
TensorMeta GetMeta(WireReader& in);
// String tensors travel as their strings, each with its length.
std::string FlattenStrings(const Tensor& tensor);
Tensor UnflattenStrings(std::string_view bytes, const Shape& shape);

inline constexpr uint64_t kMaxTensors = 1 << 20;  // of one message

}  // namespace cohort
