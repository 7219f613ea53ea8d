// Frames: what one gRPC message holds. docs/formats.md has the byte layout.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/transport.h"

namespace cohort {

enum class FrameType : uint8_t {
  kHello = 1,        // payload: EncodeHello
  kProof = 2,        // payload: the dialer's proof
  kWelcome = 3,      // payload: the connection's number (fixed 64)
  kRefused = 4,      // payload: code, message
  kHeartbeat = 5,
  kMessages = 6,     // whole small messages, one after another
  kBulkBegin = 7,    // one message without its tensors' bytes
  kBulkChunk = 8,    // the next bytes of it
};

// The sum of what a message would take in a kMessages frame.
size_t EncodedSize(const Message& message);

// Header text and payload in one slice.
grpc::ByteBuffer EncodeFrame(FrameType type, std::string_view payload);
grpc::ByteBuffer EncodeMessages(const std::vector<Message>& messages);
grpc::ByteBuffer EncodeBulkBegin(const Message& message);
// `size` bytes at `data` without a copy; `owner` is held until gRPC has let go of them.
grpc::ByteBuffer EncodeBulkChunk(const BufferPtr& owner, const void* data, size_t size);
// The bytes of a tensor as they travel in chunks; strings are flattened.
Tensor FlattenForBulk(const Tensor& tensor);

// One received frame as one piece of memory (kBulkChunk excepted, see BulkReceiver). Throws DataLossError.
struct Frame {
  FrameType type;
  std::string payload;
};
Frame DecodeFrame(const grpc::ByteBuffer& buffer);
std::vector<Message> DecodeMessages(std::string_view payload);

// Puts together the messages of a bulk stream.
class BulkReceiver {
 public:
  // Takes the next frame of the stream; true when it completes a message, which `Take` then gives. Throws DataLossError.
  bool Add(const grpc::ByteBuffer& buffer);
  Message Take() { return std::move(message_); }

 private:
  void Begin(std::string_view payload);
  bool FinishIfComplete();

  Message message_;
  std::vector<Tensor> raw_;      // of string tensors: their flat bytes; else the tensor itself
  std::vector<Shape> string_shapes_;
  size_t tensor_ = 0;            // being filled
  size_t filled_ = 0;            // bytes of it
  bool open_ = false;
};

}  // namespace cohort
