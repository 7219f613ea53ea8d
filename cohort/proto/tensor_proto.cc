#include "cohort/proto/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/tensor.pb.h"

namespace cohort {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor_content is little-endian");

constexpr uint64_t kMaxGrowth = 64;

Tensor NewTensor(const proto::TensorProto& in, TensorBudget& budget) {
  if (!IsKnownDType(in.dtype()) || in.dtype() == proto::DT_RESOURCE || in.dtype() == proto::DT_INVALID) {
    throw InvalidArgumentError(StrCat("[tensor] a TensorProto of a dtype that we have was expected; got dtype number ",
                                      static_cast<int>(in.dtype()), " of shape ", FromProto(in.tensor_shape())));
  }
  const Shape shape = FromProto(in.tensor_shape());
  if (!shape.IsFullyDefined()) {
    throw InvalidArgumentError(StrCat("[tensor] the shape of a TensorProto must be fully defined; got ", shape));
  }
  const auto dtype = static_cast<DType>(in.dtype());
  const size_t element = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  budget.Take(static_cast<uint64_t>(shape.num_elements()) * element, in.ByteSizeLong(), dtype, shape);
  return Tensor(dtype, shape);
}

void CopyContent(const std::string& content, Tensor* out) {
  if (content.size() != out->bytes()) {
    throw InvalidArgumentError(StrCat("[tensor] tensor_content of ", out->dtype(), out->shape(), " must have ",
                                      out->bytes(), " bytes; got ", content.size()));
  }
  if (content.empty()) return;
  if (out->dtype() == DType::kBool) {
    for (size_t i = 0; i < content.size(); ++i) out->data<bool>()[i] = content[i] != 0;
    return;
  }
  std::memcpy(out->raw_data(), content.data(), content.size());
}

// Fills `out` from a typed list, by convert(list[i]).
template <typename T, typename List, typename Convert>
void CopyList(const List& list, Convert convert, Tensor* out) {
  const int64_t count = out->num_elements();
  const int64_t given = list.size();
  if (given > count) {
    throw InvalidArgumentError(StrCat("[tensor] a TensorProto of ", out->dtype(), out->shape(), " holds at most ",
                                      count, " values; got ", given));
  }
  T* data = out->data<T>();
  for (int64_t i = 0; i < given; ++i) data[i] = convert(list.Get(static_cast<int>(i)));
  const T last = given > 0 ? data[given - 1] : T();
  for (int64_t i = given; i < count; ++i) data[i] = last;
}

constexpr auto kSame = [](const auto& value) { return value; };

void AppendOne(const Tensor& tensor, proto::TensorProto* out) {
  switch (tensor.dtype()) {
    case DType::kFloat32: out->add_float_val(*tensor.data<float>()); break;
    case DType::kFloat64: out->add_double_val(*tensor.data<double>()); break;
    case DType::kInt32: out->add_int_val(*tensor.data<int32_t>()); break;
    case DType::kUint8: out->add_int_val(*tensor.data<uint8_t>()); break;
    case DType::kInt64: out->add_int64_val(*tensor.data<int64_t>()); break;
    case DType::kBool: out->add_bool_val(*tensor.data<bool>()); break;
    case DType::kBfloat16: out->add_half_val(tensor.data<bfloat16>()->bits); break;
    default: throw InternalError(StrCat("[tensor] no typed list for ", tensor.dtype()));
  }
}

}  // namespace

void TensorBudget::Take(uint64_t tensor_bytes, uint64_t message_bytes, DType dtype, const Shape& shape) {
  const uint64_t free = message_bytes * kMaxGrowth;
  const uint64_t more = tensor_bytes - std::min(tensor_bytes, free);
  if (more > left_) {
    throw InvalidArgumentError(StrCat("[tensor] expected a tensor that its message of ", message_bytes,
                                      " bytes explains; got ", dtype, shape, " of ", tensor_bytes,
                                      " bytes (a message may have ", left_, " bytes more than ", kMaxGrowth,
                                      " times the bytes of its tensors)"));
  }
  left_ -= more;
}

void ToProto(const Shape& shape, proto::TensorShapeProto* out) {
  out->Clear();
  out->set_unknown_rank(!shape.has_rank());
  for (const int64_t dim : shape.dims()) out->add_dim()->set_size(dim);
}

Shape FromProto(const proto::TensorShapeProto& in) {
  if (in.unknown_rank()) return Shape::UnknownRank();
  constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max() / 64;
  Shape shape;
  int64_t product = 1;  // without dimensions of 0 and -1, so that the order of dimensions does not matter
  for (const auto& dim : in.dim()) {
    shape.AddDim(dim.size());
    if (dim.size() > 1) {
      if (product > kMaxElements / dim.size()) {
        throw InvalidArgumentError(StrCat("[tensor] a shape must have fewer than ", kMaxElements, " elements; got ",
                                          shape, in.dim_size() > shape.rank() ? " and more" : ""));
      }
      product *= dim.size();
    }
  }
  return shape;
}

void ToProto(const Tensor& tensor, proto::TensorProto* out) {
  if (!tensor.defined() || IsHandle(tensor.dtype()) || !tensor.space().is_host()) {
    throw InvalidArgumentError(StrCat(
        "[tensor] only host tensors of plain elements can be written as a TensorProto; got ", tensor.ToString(0)));
  }
  out->Clear();
  out->set_dtype(static_cast<proto::DataType>(tensor.dtype()));
  ToProto(tensor.shape(), out->mutable_tensor_shape());
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.values<std::string>()) out->add_string_val(text);
  } else if (tensor.num_elements() == 1) {
    AppendOne(tensor, out);
  } else if (tensor.num_elements() > 1) {
    out->set_tensor_content(tensor.raw_data(), tensor.bytes());
  }
}

Tensor FromProto(const proto::TensorProto& in) {
  TensorBudget budget;
  return FromProto(in, budget);
}

Tensor FromProto(const proto::TensorProto& in, TensorBudget& budget) {
  Tensor out = NewTensor(in, budget);
  if (!in.tensor_content().empty() && out.dtype() != DType::kString) {
    CopyContent(in.tensor_content(), &out);
    return out;
  }
  switch (out.dtype()) {
    case DType::kFloat32: CopyList<float>(in.float_val(), kSame, &out); break;
    case DType::kFloat64: CopyList<double>(in.double_val(), kSame, &out); break;
    case DType::kInt32: CopyList<int32_t>(in.int_val(), kSame, &out); break;
    case DType::kUint8:
      CopyList<uint8_t>(
          in.int_val(), [](int32_t value) { return static_cast<uint8_t>(value); }, &out);
      break;
    case DType::kInt64: CopyList<int64_t>(in.int64_val(), kSame, &out); break;
    case DType::kBool: CopyList<bool>(in.bool_val(), kSame, &out); break;
    case DType::kBfloat16:
      CopyList<bfloat16>(
          in.half_val(), [](int32_t bits) { return bfloat16::FromBits(static_cast<uint16_t>(bits)); }, &out);
      break;
    case DType::kString: CopyList<std::string>(in.string_val(), kSame, &out); break;
    default: throw InternalError(StrCat("[tensor] no typed list for ", out.dtype()));
  }
  return out;
}

}  // namespace cohort
