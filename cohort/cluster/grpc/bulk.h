// Sends and receives large messages. A large message is a head (kind, header, dtype and shape of each tensor), followed
// by the bytes of the tensors. It travels as a sequence of frames.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/window.h"
#include "cohort/core/mutex.h"

namespace cohort {

// Divides one message into frames. It copies no tensor bytes, except those of string tensors and those that go through
// a window (window.h). A GrpcConnection owns it. Not thread-safe.
class BulkSender {
 public:
  explicit BulkSender(Message message);
  bool done() const { return piece_ == pieces_.size(); }
  // Returns the next frame, with at most `chunk` bytes of the message. Requires: !done(), and `chunk` is at least 1.
  grpc::ByteBuffer Next(size_t chunk);
  // Returns how many bytes of the message are left.
  size_t left() const { return left_; }
  // Copies the next `room.size` bytes to the window. Returns the frame that tells the receiver where they are.
  // Requires: `room.size` is at least 1 and at most left().
  grpc::ByteBuffer NextThrough(const SendWindow::Room& room);

 private:
  // Bytes to send, in a tensor that keeps them alive until gRPC no longer needs them.
  struct Piece {
    Tensor bytes;
    size_t size;
  };
  bool begins() const { return piece_ == 0 && at_ == 0; }
  // Advance returns the next bytes of the message, at most `most`, all of one piece. Then it moves behind them.
  struct Part {
    const Piece* piece;
    char* data;
    size_t size;
  };
  Part Advance(size_t most);

  std::vector<Piece> pieces_;  // the head is the first piece; no piece is empty
  size_t piece_ = 0;
  size_t at_ = 0;  // position in pieces_[piece_]
  size_t left_ = 0;
};

// Assembles messages from frames. It allocates the memory of a tensor when the tensor's first byte has come, and
// accepts no tensor that is larger than the machine's memory. After an error it must not be used any more. A
// GrpcConnection owns it. Not thread-safe.
class BulkReceiver {
 public:
  // Adds the next frame, kBulkBegin or kBulkChunk. Returns true if the message is complete now; the caller then calls
  // Take. Throws DataLossError if the frame cannot follow the frames before it, or if its bytes are not those of a
  // message.
  bool Add(const grpc::ByteBuffer& buffer);
  bool complete() const { return state_ == State::kComplete; }
  // Adds the payload of a kWindowChunk frame, which says where its bytes lie in `window`. Returns the number of these
  // bytes. If complete() is true afterwards, the caller calls Take. Throws DataLossError as Add does, and if the bytes
  // lie outside of the window.
  size_t AddThrough(const ReceiveWindow& window, std::string_view payload);
  // Returns the message. The receiver is then ready for the next one. Requires: complete() is true, and Take was not
  // called for this message before.
  Message Take();
  // Frees what has come. The receiver is then as new.
  void Reset();
  // Returns the message that is coming in, if its head has come and its last byte has not. Thread-safe.
  std::optional<IncomingMessage> incoming() const COHORT_EXCLUDES(mu_);

 private:
  // Begins a message whose head has `size` bytes.
  void Begin(uint64_t size);
  void ExpectMiddle() const;
  void AddBytes(const char* data, size_t size);
  void ReadHead();
  // Begins the next tensor that has bytes.
  void OpenTensor();
  void CloseTensor();

  enum class State { kIdle, kHead, kTensors, kComplete };
  State state_ = State::kIdle;
  Message message_;
  std::string head_;
  size_t head_size_ = 0;
  std::vector<TensorMeta> metas_;
  std::vector<size_t> sizes_;       // size of each tensor's bytes as they travel
  Tensor raw_;                      // the tensor that is being filled; for a string tensor: the bytes of its strings
  size_t filled_ = 0;               // how many bytes of raw_ have come
  std::atomic<uint64_t> bytes_{0};  // how many bytes of the message have come
  mutable Mutex mu_;
  std::optional<IncomingMessage> incoming_ COHORT_GUARDED_BY(mu_);  // without `bytes`
};

}  // namespace cohort
