#include "cohort/cluster/grpc/frame.h"

#include <grpcpp/support/slice.h>

#include <cstring>

#include "cohort/cluster/wire.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr uint64_t kMaxTensors = 1 << 20;
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;

void PutMeta(WireWriter& out, const Tensor& tensor) {
  out.Varint(static_cast<uint64_t>(tensor.dtype()));
  out.Varint(static_cast<uint64_t>(tensor.shape().rank()));
  for (const int64_t dim : tensor.shape().dims()) out.Varint(static_cast<uint64_t>(dim));
}

struct Meta {
  DType dtype;
  Shape shape;
};

Meta GetMeta(WireReader& in) {
  const auto dtype = static_cast<int32_t>(in.Varint(1000));
  if (!IsKnownDType(dtype) || static_cast<DType>(dtype) == DType::kResource) {
    throw DataLossError(StrCat("[frame] dtype number ", dtype, " cannot travel"));
  }
  Meta meta{static_cast<DType>(dtype), {}};
  const uint64_t rank = in.Varint(Shape::kMaxRank);
  uint64_t elements = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    const uint64_t dim = in.Varint(kMaxTensorBytes);
    meta.shape.AddDim(static_cast<int64_t>(dim));
    elements *= dim;
    if (elements > kMaxTensorBytes) throw DataLossError(StrCat("[frame] a tensor of shape ", meta.shape));
  }
  return meta;
}

std::string FlattenStrings(const Tensor& tensor) {
  WireWriter out;
  for (const std::string& text : tensor.values<std::string>()) out.String(text);
  return out.Take();
}

Tensor UnflattenStrings(std::string_view bytes, const Shape& shape) {
  Tensor tensor(DType::kString, shape);
  WireReader in(bytes);
  std::string* out = tensor.data<std::string>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) out[i] = in.String();
  in.ExpectEnd();
  return tensor;
}

void PutHead(WireWriter& out, const Message& message) {
  out.Varint(message.kind);
  out.String(message.header);
  out.Varint(message.tensors.size());
}

grpc::ByteBuffer OneSlice(FrameType type, std::string_view payload) {
  grpc_slice raw = grpc_slice_malloc(payload.size() + 1);
  GRPC_SLICE_START_PTR(raw)[0] = static_cast<uint8_t>(type);
  std::memcpy(GRPC_SLICE_START_PTR(raw) + 1, payload.data(), payload.size());
  grpc::Slice slice(raw, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

size_t EncodedSize(const Message& message) {
  size_t bytes = message.header.size() + 16;
  for (const Tensor& tensor : message.tensors) {
    bytes += tensor.bytes() + 32;
    if (tensor.dtype() == DType::kString) {
      for (const std::string& text : tensor.values<std::string>()) bytes += text.size() + 4;
    }
  }
  return bytes;
}

grpc::ByteBuffer EncodeFrame(FrameType type, std::string_view payload) { return OneSlice(type, payload); }

grpc::ByteBuffer EncodeMessages(const std::vector<Message>& messages) {
  WireWriter out;
  out.Varint(messages.size());
  for (const Message& message : messages) {
    PutHead(out, message);
    for (const Tensor& tensor : message.tensors) {
      PutMeta(out, tensor);
      if (tensor.dtype() == DType::kString) {
        out.String(FlattenStrings(tensor));
      } else {
        out.String({static_cast<const char*>(tensor.raw_data()), tensor.bytes()});
      }
    }
  }
  return OneSlice(FrameType::kMessages, out.Take());
}

std::vector<Message> DecodeMessages(std::string_view payload) {
  WireReader in(payload);
  std::vector<Message> messages;
  const uint64_t count = in.Varint(kMaxTensors);
  for (uint64_t m = 0; m < count; ++m) {
    Message message;
    message.kind = static_cast<uint16_t>(in.Varint(UINT16_MAX));
    message.header = in.String();
    const uint64_t tensors = in.Varint(kMaxTensors);
    for (uint64_t t = 0; t < tensors; ++t) {
      const Meta meta = GetMeta(in);
      const std::string_view bytes = in.View();
      if (meta.dtype == DType::kString) {
        message.tensors.push_back(UnflattenStrings(bytes, meta.shape));
        continue;
      }
      if (bytes.size() != static_cast<size_t>(meta.shape.num_elements()) * DTypeSize(meta.dtype)) {
        throw DataLossError(StrCat("[frame] ", bytes.size(), " bytes for ", meta.dtype, meta.shape));
      }
      Tensor tensor(meta.dtype, meta.shape);
      if (!bytes.empty()) std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
      message.tensors.push_back(std::move(tensor));
    }
    messages.push_back(std::move(message));
  }
  in.ExpectEnd();
  return messages;
}

grpc::ByteBuffer EncodeBulkBegin(const Message& message) {
  WireWriter out;
  PutHead(out, message);
  for (const Tensor& tensor : message.tensors) {
    PutMeta(out, tensor);
    if (tensor.dtype() == DType::kString) out.Varint(FlattenForBulk(tensor).bytes());
  }
  return OneSlice(FrameType::kBulkBegin, out.Take());
}

grpc::ByteBuffer EncodeBulkChunk(const BufferPtr& owner, const void* data, size_t size) {
  const char type = static_cast<char>(FrameType::kBulkChunk);
  grpc::Slice slices[2] = {
      grpc::Slice(&type, 1),
      grpc::Slice(const_cast<void*>(data), size, [](void* held) { delete static_cast<BufferPtr*>(held); },
                  new BufferPtr(owner))};
  return grpc::ByteBuffer(slices, 2);
}

Tensor FlattenForBulk(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return tensor;
  const std::string flat = FlattenStrings(tensor);
  Tensor bytes(DType::kUint8, Shape{static_cast<int64_t>(flat.size())});
  std::memcpy(bytes.raw_data(), flat.data(), flat.size());
  return bytes;
}

Frame DecodeFrame(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) throw DataLossError("[frame] a frame cannot be read");
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  if (bytes.empty() || bytes[0] < 1 || bytes[0] > static_cast<char>(FrameType::kBulkChunk)) {
    throw DataLossError(StrCat("[frame] ", bytes.empty() ? "an empty frame" : "an unknown type of frame"));
  }
  const auto type = static_cast<FrameType>(bytes[0]);
  bytes.erase(0, 1);
  return {type, std::move(bytes)};
}

void BulkReceiver::Begin(std::string_view payload) {
  if (open_) throw DataLossError("[frame] a bulk message begins inside another");
  WireReader in(payload);
  message_ = Message();
  raw_.clear();
  string_shapes_.clear();
  message_.kind = static_cast<uint16_t>(in.Varint(UINT16_MAX));
  message_.header = in.String();
  const uint64_t count = in.Varint(kMaxTensors);
  for (uint64_t i = 0; i < count; ++i) {
    const Meta meta = GetMeta(in);
    const bool strings = meta.dtype == DType::kString;
    string_shapes_.push_back(strings ? meta.shape : Shape::UnknownRank());
    raw_.push_back(strings ? Tensor(DType::kUint8, Shape{static_cast<int64_t>(in.Varint(kMaxTensorBytes))})
                           : Tensor(meta.dtype, meta.shape));
  }
  in.ExpectEnd();
  tensor_ = 0;
  filled_ = 0;
  open_ = true;
}

bool BulkReceiver::FinishIfComplete() {
  while (tensor_ < raw_.size() && filled_ == raw_[tensor_].bytes()) {
    ++tensor_;
    filled_ = 0;
  }
  if (tensor_ < raw_.size()) return false;
  for (size_t i = 0; i < raw_.size(); ++i) {
    if (!string_shapes_[i].has_rank()) {
      message_.tensors.push_back(std::move(raw_[i]));
    } else {
      message_.tensors.push_back(
          UnflattenStrings({static_cast<const char*>(raw_[i].raw_data()), raw_[i].bytes()}, string_shapes_[i]));
    }
  }
  open_ = false;
  return true;
}

bool BulkReceiver::Add(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok() || buffer.Length() == 0) throw DataLossError("[frame] a frame cannot be read");
  size_t skip = 1;  // the type
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].size() == 0) continue;
    if (static_cast<FrameType>(slices[i].begin()[0]) == FrameType::kBulkChunk) break;
    const Frame frame = DecodeFrame(buffer);
    if (frame.type != FrameType::kBulkBegin) throw DataLossError("[frame] not a frame of a bulk stream");
    Begin(frame.payload);
    return FinishIfComplete();
  }
  if (!open_) throw DataLossError("[frame] a chunk outside a bulk message");
  for (const grpc::Slice& slice : slices) {
    const auto* data = reinterpret_cast<const char*>(slice.begin());
    size_t size = slice.size();
    const size_t skipped = std::min(skip, size);
    data += skipped;
    size -= skipped;
    skip -= skipped;
    while (size > 0) {
      if (tensor_ == raw_.size()) throw DataLossError("[frame] more bytes than the bulk message has");
      Tensor& target = raw_[tensor_];
      const size_t part = std::min(size, target.bytes() - filled_);
      std::memcpy(static_cast<char*>(target.raw_data()) + filled_, data, part);
      filled_ += part;
      data += part;
      size -= part;
      if (filled_ == target.bytes()) {
        ++tensor_;
        filled_ = 0;
      }
    }
  }
  return FinishIfComplete();
}

}  // namespace cohort
