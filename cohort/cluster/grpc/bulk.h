// Large messages as a stream of frames: a head (kind, header, what the tensors are), then the tensors' bytes.
#pragma once

#include <string>
#include <vector>

#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/window.h"

namespace cohort {

// Cuts one message into frames without copying its tensors (strings excepted), or into what goes through a window.
class BulkSender {
 public:
  explicit BulkSender(Message message);
  bool done() const { return piece_ == pieces_.size(); }
  // The next frame, with at most `chunk` bytes of the message. Not when done.
  grpc::ByteBuffer Next(size_t chunk);
  // How many bytes of the message are left.
  size_t left() const { return left_; }
  // The frame for the next `room.size` bytes (from 1, no more than are left), which it copies to the window.
  grpc::ByteBuffer NextThrough(const SendWindow::Room& room);

 private:
  // Bytes that travel, and what keeps them alive until gRPC has let go of them.
  struct Piece {
    Tensor bytes;
    size_t size;
  };
  bool begins() const { return piece_ == 0 && at_ == 0; }
  // The next bytes, of one piece, at most `most`; with them it goes on.
  struct Part {
    const Piece* piece;
    char* data;
    size_t size;
  };
  Part Advance(size_t most);

  std::vector<Piece> pieces_;  // the head first; none is empty
  size_t piece_ = 0;
  size_t at_ = 0;  // in it
  size_t left_ = 0;
};

// Puts messages together. Memory for a tensor is taken when its first byte is there, and none for more than this
// machine has. Any error leaves it unusable.
class BulkReceiver {
 public:
  // Takes the next frame of the stream; true when it completes a message, which `Take` then gives. Throws
  // DataLossError.
  bool Add(const grpc::ByteBuffer& buffer);
  bool complete() const { return state_ == State::kComplete; }
  // The same for a frame kWindowChunk, whose bytes lie in `window`; returns how many there are.
  size_t AddThrough(const ReceiveWindow& window, std::string_view payload);
  Message Take() { return std::move(message_); }

 private:
  // A message whose head has `size` bytes.
  void Begin(uint64_t size);
  void ExpectMiddle() const;
  void AddBytes(const char* data, size_t size);
  void ReadHead();
  // Goes on to the next tensor that has bytes.
  void OpenTensor();
  void CloseTensor();

  enum class State { kIdle, kHead, kTensors, kComplete };
  State state_ = State::kIdle;
  Message message_;
  std::string head_;
  size_t head_size_ = 0;
  std::vector<TensorMeta> metas_;
  std::vector<size_t> sizes_;  // bytes of each tensor as it travels
  Tensor raw_;                 // the tensor being filled; of strings, their flat bytes
  size_t filled_ = 0;          // bytes of it
};

}  // namespace cohort
