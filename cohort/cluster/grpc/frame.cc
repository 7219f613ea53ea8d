#include "cohort/cluster/grpc/frame.h"

#include <cstring>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 40;

grpc::ByteBuffer OneSlice(FrameType type, std::string_view payload) {
  grpc_slice raw = grpc_slice_malloc(payload.size() + 1);
  GRPC_SLICE_START_PTR(raw)[0] = static_cast<uint8_t>(type);
  if (!payload.empty()) std::memcpy(GRPC_SLICE_START_PTR(raw) + 1, payload.data(), payload.size());
  grpc::Slice slice(raw, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

Tensor GetTensor(WireReader& in) {
  const TensorMeta meta = GetMeta(in);
  const std::string_view bytes = in.View();
  if (meta.dtype == DType::kString) return UnflattenStrings(bytes, meta.shape);
  if (bytes.size() != static_cast<size_t>(meta.shape.num_elements()) * DTypeSize(meta.dtype)) {
    throw DataLossError(StrCat("[frame] ", bytes.size(), " bytes for ", meta.dtype, meta.shape));
  }
  Tensor tensor(meta.dtype, meta.shape);
  if (!bytes.empty()) std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

void PutMeta(WireWriter& out, const Tensor& tensor) {
  out.Varint(static_cast<uint64_t>(tensor.dtype()));
  out.Varint(static_cast<uint64_t>(tensor.shape().rank()));
  for (const int64_t dim : tensor.shape().dims()) out.Varint(static_cast<uint64_t>(dim));
}

TensorMeta GetMeta(WireReader& in) {
  const auto dtype = static_cast<int32_t>(in.Varint(1000));
  const auto known = static_cast<DType>(dtype);
  if (!IsKnownDType(dtype) || IsHandle(known) || known == DType::kInvalid) {
    throw DataLossError(StrCat("[frame] dtype number ", dtype, " cannot travel"));
  }
  TensorMeta meta{known, {}};
  const uint64_t rank = in.Varint(Shape::kMaxRank);
  uint64_t elements = 1;
  for (uint64_t i = 0; i < rank; ++i) {
    const uint64_t dim = in.Varint(kMaxElements - 1);
    meta.shape.AddDim(static_cast<int64_t>(dim));
    if (__builtin_mul_overflow(elements, dim, &elements) || elements >= kMaxElements) {
      throw DataLossError(StrCat("[frame] a tensor of shape ", meta.shape));
    }
  }
  return meta;
}

std::string FlattenStrings(const Tensor& tensor) {
  WireWriter out;
  for (const std::string& text : tensor.values<std::string>()) out.String(text);
  return out.Take();
}

Tensor UnflattenStrings(std::string_view bytes, const Shape& shape) {
  const auto count = static_cast<size_t>(shape.num_elements());
  if (count > bytes.size()) {  // each string takes at least one byte
    throw DataLossError(StrCat("[frame] ", bytes.size(), " bytes for ", DType::kString, shape));
  }
  Tensor tensor(DType::kString, shape);
  WireReader in(bytes);
  std::string* out = tensor.data<std::string>();
  for (size_t i = 0; i < count; ++i) out[i] = in.String();
  in.ExpectEnd();
  return tensor;
}

Message AfterBulk(Message message, uint64_t bulk_messages) {
  WireWriter header;
  header.Varint(bulk_messages);
  header.Varint(message.kind);
  message.header = header.Take() + message.header;
  message.kind = kReservedKind;
  return message;
}

uint64_t TakeAfterBulk(Message* message) {
  WireReader in(message->header);
  const uint64_t bulk_messages = in.Varint();
  const auto kind = static_cast<uint16_t>(in.Varint(kReservedKind - 1));
  message->header = std::string(in.Rest());
  message->kind = kind;
  return bulk_messages;
}

grpc::ByteBuffer EncodeFrame(FrameType type, std::string_view payload) { return OneSlice(type, payload); }

grpc::ByteBuffer EncodeMessages(const std::vector<Message>& messages) {
  thread_local WireWriter out;  // keeps its memory for the next call
  out.Clear();
  out.Varint(messages.size());
  for (const Message& message : messages) {
    out.Varint(message.kind);
    out.String(message.header);
    out.Varint(message.tensors.size());
    for (const Tensor& tensor : message.tensors) {
      PutMeta(out, tensor);
      if (tensor.dtype() == DType::kString) {
        out.String(FlattenStrings(tensor));
      } else {
        out.String({static_cast<const char*>(tensor.raw_data()), tensor.bytes()});
      }
    }
  }
  return OneSlice(FrameType::kMessages, out.view());
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
    for (uint64_t t = 0; t < tensors; ++t) message.tensors.push_back(GetTensor(in));
    messages.push_back(std::move(message));
  }
  in.ExpectEnd();
  return messages;
}

FrameView::FrameView(const grpc::ByteBuffer& buffer) {
  if (!buffer.TrySingleSlice(&slice_).ok() && !buffer.DumpToSingleSlice(&slice_).ok()) {
    throw DataLossError("[frame] a frame cannot be read");
  }
  if (slice_.size() == 0) throw DataLossError("[frame] an empty frame");
  const uint8_t type = *slice_.begin();
  if (type < 1 || type > static_cast<uint8_t>(kLastFrameType)) {
    throw DataLossError(StrCat("[frame] expected a frame of type 1 to ", static_cast<int>(kLastFrameType),
                               "; got type ", static_cast<int>(type)));
  }
}

}  // namespace cohort
