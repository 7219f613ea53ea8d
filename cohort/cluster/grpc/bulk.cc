// A BulkSender writes a message's head into a tensor and then walks through the pieces, head and tensors, one after
// another. A BulkReceiver is a state machine that does the reverse: first the bytes of the head, then those of each
// tensor.
#include "cohort/cluster/grpc/bulk.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr uint64_t kMaxHead = uint64_t{1} << 31;  // graphs are sent in headers

// A reference to a buffer. gRPC releases it on any thread.
class Held {
 public:
  explicit Held(BufferPtr buffer) : buffer_(std::move(buffer)) { made_.store(true, std::memory_order_release); }
  static void Release(void* held) {
    auto* const mine = static_cast<Held*>(held);
    if (mine->made_.load(std::memory_order_acquire)) delete mine;  // always set; the read orders the threads
  }

 private:
  const BufferPtr buffer_;
  std::atomic<bool> made_{false};
};

Tensor BytesOf(std::string_view text) {
  Tensor bytes(DType::kUint8, Shape{static_cast<int64_t>(text.size())});
  if (!text.empty()) std::memcpy(bytes.raw_data(), text.data(), text.size());
  return bytes;
}

uint64_t PhysicalMemory() {
  static const uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

}  // namespace

BulkSender::BulkSender(Message message) {
  WireWriter head;
  head.Varint(message.kind);
  head.String(message.header);
  head.Varint(message.tensors.size());
  std::vector<Piece> tensors;
  for (Tensor& tensor : message.tensors) {
    PutMeta(head, tensor);
    if (tensor.dtype() == DType::kString) {
      tensor = BytesOf(FlattenStrings(tensor));
      head.Varint(tensor.bytes());
    }
    if (tensor.bytes() > 0) tensors.push_back({tensor, tensor.bytes()});
  }
  Tensor bytes = BytesOf(head.view());
  const size_t size = bytes.bytes();
  pieces_.push_back({std::move(bytes), size});
  std::move(tensors.begin(), tensors.end(), std::back_inserter(pieces_));
  for (const Piece& piece : pieces_) left_ += piece.size;
}

BulkSender::Part BulkSender::Advance(size_t most) {
  const Piece& piece = pieces_[piece_];
  const size_t size = std::min(most, piece.size - at_);
  // gRPC's interface takes bytes that it only reads as not const.
  char* const data = const_cast<char*>(static_cast<const char*>(piece.bytes.raw_data())) + at_;
  at_ += size;
  left_ -= size;
  if (at_ == piece.size) {
    ++piece_;
    at_ = 0;
  }
  return {&piece, data, size};
}

grpc::ByteBuffer BulkSender::Next(size_t chunk) {
  WireWriter start;
  const bool first = begins();
  std::string prefix(1, static_cast<char>(first ? FrameType::kBulkBegin : FrameType::kBulkChunk));
  if (first) {
    start.Varint(pieces_[0].size);
    prefix.append(start.view());
  }
  std::vector<grpc::Slice> slices;
  slices.emplace_back(prefix);
  // Bytes of the head and of tensors may share a frame. But a Begin frame has only bytes of the head.
  while (!done() && chunk > 0) {
    const Part part = Advance(chunk);
    slices.emplace_back(part.data, part.size, Held::Release, new Held(part.piece->bytes.buffer()));
    chunk -= part.size;
    if (first) break;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer BulkSender::NextThrough(const SendWindow::Room& room) {
  WireWriter payload;
  payload.Varint(begins() ? 1 + pieces_[0].size : 0);
  payload.Varint(room.offset);
  payload.Varint(room.size);
  for (size_t filled = 0; filled < room.size;) {
    const Part part = Advance(room.size - filled);
    std::memcpy(room.data + filled, part.data, part.size);
    filled += part.size;
  }
  return EncodeFrame(FrameType::kWindowChunk, payload.view());
}

void BulkReceiver::Begin(uint64_t size) {
  if (state_ == State::kHead || state_ == State::kTensors) {
    throw DataLossError("[frame] a bulk message begins inside another");
  }
  if (size > kMaxHead) throw DataLossError(StrCat("[frame] a head of ", size, " bytes"));
  message_ = Message();
  head_.clear();
  metas_.clear();
  sizes_.clear();
  head_size_ = size;
  state_ = State::kHead;
  bytes_.store(0, std::memory_order_relaxed);
}

Message BulkReceiver::Take() {
  {
    MutexLock lock(mu_);
    incoming_.reset();
  }
  return std::move(message_);
}

void BulkReceiver::Reset() {
  Take();
  state_ = State::kIdle;
  head_.clear();
  metas_.clear();
  sizes_.clear();
  raw_.Reset();
}

std::optional<IncomingMessage> BulkReceiver::incoming() const {
  MutexLock lock(mu_);
  std::optional<IncomingMessage> incoming = incoming_;
  if (incoming) incoming->bytes = bytes_.load(std::memory_order_relaxed);
  return incoming;
}

void BulkReceiver::ExpectMiddle() const {
  if (state_ != State::kHead && state_ != State::kTensors) {
    throw DataLossError("[frame] a chunk outside a bulk message");
  }
}

size_t BulkReceiver::AddThrough(const ReceiveWindow& window, std::string_view payload) {
  WireReader in(payload);
  const uint64_t begins = in.Varint();
  const uint64_t offset = in.Varint();
  const uint64_t size = in.Varint();
  in.ExpectEnd();
  if (begins > 0) Begin(begins - 1);
  ExpectMiddle();
  const std::string_view bytes = window.At(offset, size);
  AddBytes(bytes.data(), bytes.size());
  return bytes.size();
}

void BulkReceiver::ReadHead() {
  WireReader in(head_);
  message_.kind = static_cast<uint16_t>(in.Varint(UINT16_MAX));
  message_.header = in.String();
  const uint64_t count = in.Varint(kMaxTensors);
  for (uint64_t i = 0; i < count; ++i) {
    metas_.push_back(GetMeta(in));
    const TensorMeta& meta = metas_.back();
    const uint64_t elements = static_cast<uint64_t>(meta.shape.num_elements());
    const uint64_t size = meta.dtype == DType::kString ? in.Varint() : elements * DTypeSize(meta.dtype);
    if (size > PhysicalMemory()) {
      throw DataLossError(StrCat("[frame] ", size, " bytes for ", meta.dtype, meta.shape, "; this machine has ",
                                 PhysicalMemory(), " bytes of memory"));
    }
    sizes_.push_back(static_cast<size_t>(size));
  }
  in.ExpectEnd();
  head_.clear();
  state_ = State::kTensors;
  {
    MutexLock lock(mu_);
    incoming_ = IncomingMessage{message_.kind, message_.header.substr(0, 64), 0};
  }
  OpenTensor();
}

void BulkReceiver::OpenTensor() {
  while (message_.tensors.size() < metas_.size()) {
    const size_t i = message_.tensors.size();
    raw_ = Tensor();
    filled_ = 0;
    if (sizes_[i] > 0) return;
    CloseTensor();
  }
  state_ = State::kComplete;
}

void BulkReceiver::CloseTensor() {
  const TensorMeta& meta = metas_[message_.tensors.size()];
  if (meta.dtype != DType::kString) {
    message_.tensors.push_back(raw_.defined() ? std::move(raw_) : Tensor(meta.dtype, meta.shape));
    return;
  }
  const std::string_view flat(static_cast<const char*>(raw_.raw_data()), raw_.bytes());
  message_.tensors.push_back(UnflattenStrings(flat, meta.shape));
}

void BulkReceiver::AddBytes(const char* data, size_t size) {
  bytes_.store(bytes_.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
  if (state_ == State::kHead) {
    const size_t part = std::min(size, head_size_ - head_.size());
    head_.append(data, part);
    data += part;
    size -= part;
    if (head_.size() == head_size_) ReadHead();
  }
  while (size > 0) {
    if (state_ != State::kTensors) throw DataLossError("[frame] more bytes than the bulk message has");
    const size_t i = message_.tensors.size();
    if (!raw_.defined()) {
      const bool strings = metas_[i].dtype == DType::kString;
      raw_ = strings ? Tensor(DType::kUint8, Shape{static_cast<int64_t>(sizes_[i])})
                     : Tensor(metas_[i].dtype, metas_[i].shape);
    }
    const size_t part = std::min(size, sizes_[i] - filled_);
    std::memcpy(static_cast<char*>(raw_.raw_data()) + filled_, data, part);
    filled_ += part;
    data += part;
    size -= part;
    if (filled_ < sizes_[i]) return;
    CloseTensor();
    OpenTensor();
  }
}

bool BulkReceiver::Add(const grpc::ByteBuffer& buffer) {
  thread_local std::vector<grpc::Slice> slices;
  slices.clear();
  struct Release {
    ~Release() { slices.clear(); }
  } release;
  if (!buffer.Dump(&slices).ok()) throw DataLossError("[frame] a frame cannot be read");
  bool typed = false;
  for (const grpc::Slice& slice : slices) {
    const auto* data = reinterpret_cast<const char*>(slice.begin());
    size_t size = slice.size();
    if (size == 0) continue;
    if (!typed) {
      if (static_cast<FrameType>(*slice.begin()) != FrameType::kBulkChunk) {
        const FrameView frame(buffer);
        if (frame.type() != FrameType::kBulkBegin) {
          throw DataLossError(StrCat("[frame] a frame of type ", static_cast<int>(frame.type()), " on a bulk stream"));
        }
        WireReader in(frame.payload());
        Begin(in.Varint());
        const std::string_view rest = in.Rest();
        if (rest.size() > head_size_) throw DataLossError("[frame] more bytes than the head of a bulk message has");
        AddBytes(rest.data(), rest.size());
        return state_ == State::kComplete;
      }
      ExpectMiddle();
      typed = true;
      ++data;
      --size;
    }
    AddBytes(data, size);
  }
  if (!typed) throw DataLossError("[frame] an empty frame");
  return state_ == State::kComplete;
}

}  // namespace cohort
