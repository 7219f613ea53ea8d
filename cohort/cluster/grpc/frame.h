// Frames: the contents of the gRPC messages of a stream. A frame has one byte for the type, then the payload, and then
// the MAC (frame_mac.h). docs/formats.md has the layout.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/transport.h"
#include "cohort/core/wire.h"

namespace cohort {

// The type of a frame, which says what its payload is.
enum class FrameType : uint8_t {
  kHandshake = 1,  // with TLS only, before kAttach: a message of the handshake (handshake.h)
  // The dialer's first frame on a stream: the number of the connection (fixed 64), as the handshake has given it.
  kAttach = 2,
  kHeartbeat = 5,
  kMessages = 6,   // whole small messages, one after another
  kBulkBegin = 7,  // begins a large message: the length of its head, and the first bytes of the head
  kBulkChunk = 8,  // the next bytes of the large message: the rest of the head, and then the tensors
  // The last frame of a stream. Payload on a control stream: 1 if the bulk stream has a goodbye too, else 0 (varint),
  // and then the reason. On a bulk stream there is no payload.
  kGoodbye = 9,
  kWindow = 10,        // payload: see SendWindow::Offer
  kWindowAnswer = 11,  // the answer to kWindow: 1 if the window is open now, else 0 (varint)
  kGivenBack = 12,     // how many pieces of the window the receiver has read since the last such frame (varint)
  // The next bytes of a large message lie in the window. The payload has three varints. The first one is 0, but in the
  // first chunk of a message it is the length of the head, plus 1. The second one is the offset of the bytes in the
  // window. The third one is the number of bytes.
  kWindowChunk = 13,
};
inline constexpr FrameType kLastFrameType = FrameType::kWindowChunk;

// The most bytes of a large message in one frame. A frame of small messages may have a few KiB more.
inline constexpr size_t kLargestChunk = 1 << 20;
// The limit for every frame. gRPC closes the stream of a peer that sends a larger one.
inline constexpr size_t kLargestFrame = 4 << 20;

// Returns a message that the receiver handles after it has handled `bulk_messages` large messages of this connection.
// It travels in a kMessages frame and has the kind kReservedKind. Its header begins with that number and the message's
// own kind.
Message AfterBulk(Message message, uint64_t bulk_messages);
// Restores the message's own kind and header. Returns the number. Throws DataLossError if the header is damaged.
uint64_t TakeAfterBulk(Message* message);

grpc::ByteBuffer EncodeFrame(FrameType type, std::string_view payload);
// Returns one frame with all messages, in order.
grpc::ByteBuffer EncodeMessages(const std::vector<Message>& messages);
// Throws DataLossError if EncodeMessages cannot have made the bytes. Allocates no more than the size of the bytes.
std::vector<Message> DecodeMessages(std::string_view payload);

// A frame that was received. If gRPC holds the frame in one piece, the bytes are not copied. The constructor throws
// DataLossError if the frame is empty or has an unknown type. payload() is valid as long as the view.
class FrameView {
 public:
  explicit FrameView(const grpc::ByteBuffer& buffer);
  FrameType type() const { return static_cast<FrameType>(*slice_.begin()); }
  std::string_view payload() const { return {reinterpret_cast<const char*>(slice_.begin()) + 1, slice_.size() - 1}; }

 private:
  grpc::Slice slice_;
};

// The description of a tensor, which precedes its bytes in small and in large messages.
struct TensorMeta {
  DType dtype = DType::kInvalid;
  Shape shape;
};
void PutMeta(WireWriter& out, const Tensor& tensor);
// Throws DataLossError if the dtype cannot be sent or the shape has 2^40 elements or more.
TensorMeta GetMeta(WireReader& in);
// The bytes of a string tensor are its strings, each with its length. UnflattenStrings throws DataLossError if the
// bytes do not fit the shape.
std::string FlattenStrings(const Tensor& tensor);
Tensor UnflattenStrings(std::string_view bytes, const Shape& shape);

inline constexpr uint64_t kMaxTensors = 1 << 20;  // in one message; also the most messages in one frame

}  // namespace cohort
