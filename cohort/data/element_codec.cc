#include "cohort/data/element_codec.h"

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/tensor.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort::data {
namespace {

constexpr uint64_t kMaxComponents = 1 << 16;

}  // namespace

void WriteInt(int64_t value, WireWriter* out) {
  out->Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

int64_t ReadInt(WireReader* in) {
  const uint64_t coded = in->Varint();
  return static_cast<int64_t>(coded >> 1) ^ -static_cast<int64_t>(coded & 1);
}

void WriteTensor(const Tensor& tensor, WireWriter* out) {
  proto::TensorProto message;
  ToProto(tensor, &message);
  out->String(message.SerializeAsString());
}

namespace {

Tensor ReadTensor(WireReader* in, TensorBudget& budget) {
  const std::string_view bytes = in->View();
  proto::TensorProto message;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(StrCat("[data] expected a serialized tensor; got ", bytes.size(), " bytes that are none"));
  }
  return FromProto(message, budget);
}

}  // namespace

Tensor ReadTensor(WireReader* in) {
  TensorBudget budget;
  return ReadTensor(in, budget);
}

void WriteElement(const Element& element, WireWriter* out) {
  out->Varint(element.size());
  for (const Tensor& tensor : element) WriteTensor(tensor, out);
}

Element ReadElement(WireReader* in) {
  Element element;
  TensorBudget budget;
  for (uint64_t left = in->Varint(kMaxComponents); left > 0; --left) element.push_back(ReadTensor(in, budget));
  return element;
}

void WriteSpec(const ElementSpec& spec, WireWriter* out) {
  out->Varint(spec.size());
  for (const TensorSpec& part : spec) {
    out->Varint(static_cast<uint64_t>(part.dtype));
    WriteInt(part.shape.rank(), out);
    for (const int64_t dim : part.shape.dims()) WriteInt(dim, out);
  }
}

ElementSpec ReadSpec(WireReader* in) {
  ElementSpec spec;
  for (uint64_t left = in->Varint(kMaxComponents); left > 0; --left) {
    TensorSpec& part = spec.emplace_back();
    const auto dtype = static_cast<int32_t>(in->Varint(1000));
    if (!IsKnownDType(dtype)) throw DataLossError(StrCat("[data] expected the number of a dtype; got ", dtype));
    part.dtype = static_cast<DType>(dtype);
    const int64_t rank = ReadInt(in);
    part.shape = rank < 0 ? Shape::UnknownRank() : Shape();
    for (int64_t i = 0; i < rank; ++i) part.shape.AddDim(ReadInt(in));
  }
  return spec;
}

}  // namespace cohort::data
