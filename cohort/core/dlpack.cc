#include "cohort/core/dlpack.h"

#include <dlpack/dlpack.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/foreign_memory.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr uint8_t kDLBoolCode = 6;  // DLPack 0.8 names it; before, libraries sent bools as uint8

struct TypePair {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};
constexpr std::array<TypePair, 7> kTypes = {{{DType::kFloat32, kDLFloat, 32},
                                             {DType::kFloat64, kDLFloat, 64},
                                             {DType::kInt32, kDLInt, 32},
                                             {DType::kInt64, kDLInt, 64},
                                             {DType::kUint8, kDLUInt, 8},
                                             {DType::kBool, kDLBoolCode, 8},
                                             {DType::kBfloat16, kDLBfloat, 16}}};

DType DTypeFromDLPack(const DLDataType& type) {
  for (const TypePair& pair : kTypes) {
    if (pair.code == type.code && pair.bits == type.bits && type.lanes == 1) return pair.dtype;
  }
  throw UnimplementedError(
      StrCat("[dlpack] expected float32, float64, int32, int64, uint8, bool or bfloat16; got type code ",
             static_cast<int>(type.code), " with ", static_cast<int>(type.bits), " bits and ", type.lanes,
             " lanes; convert the tensor in the library that made it"));
}

Shape ShapeFromDLPack(const DLTensor& from) {
  if (from.ndim < 0 || from.ndim > Shape::kMaxRank || (from.ndim > 0 && from.shape == nullptr)) {
    throw InvalidArgumentError(StrCat("[dlpack] expected a shape of 0 to ", Shape::kMaxRank, " dimensions; got ",
                                      from.ndim, from.shape == nullptr ? " and no shape" : ""));
  }
  const std::span<const int64_t> dims(from.shape, static_cast<size_t>(from.ndim));
  for (const int64_t dim : dims) {
    if (dim >= 0) continue;
    throw InvalidArgumentError(
        StrCat("[dlpack] expected dimensions of at least 0; got dimension ", dim, " among ", from.ndim));
  }
  return Shape(dims);
}

// Whether the strides, if there are any, are those of row-major order. The stride of a single row does not matter.
bool IsRowMajor(const DLTensor& from) {
  if (from.strides == nullptr) return true;
  int64_t expected = 1;
  for (int i = from.ndim - 1; i >= 0; --i) {
    if (from.shape[i] != 1 && from.strides[i] != expected) return false;
    expected *= from.shape[i];
  }
  return true;
}

// Copies dimension `axis` and those behind it to `to`; returns the end of what was written.
char* CopyStrided(const DLTensor& from, int axis, const char* data, size_t element, char* to) {
  if (axis == from.ndim) {
    std::memcpy(to, data, element);
    return to + element;
  }
  const int64_t step = from.strides[axis] * static_cast<int64_t>(element);
  for (int64_t i = 0; i < from.shape[axis]; ++i) to = CopyStrided(from, axis + 1, data + i * step, element, to);
  return to;
}

// What the receiver of a tensor holds.
struct Export {
  Tensor tensor;
  std::array<int64_t, Shape::kMaxRank> shape;
  std::array<int64_t, Shape::kMaxRank> strides;
  DLManagedTensor managed;
};

void CheckCanLeave(const Tensor& tensor) {
  if (!tensor.defined() || DTypeSize(tensor.dtype()) == 0) {
    throw InvalidArgumentError(StrCat("[dlpack] expected a tensor of numbers or bools; got ", tensor.ToString(0)));
  }
  if (!tensor.space().is_host()) {
    throw InvalidArgumentError(StrCat("[dlpack] expected a tensor in memory of the host; got ", tensor.dtype(),
                                      tensor.shape(), " in memory of ", tensor.space().ToString(),
                                      "; fetch it from a session first"));
  }
}

}  // namespace

Tensor FromDLPack(DLManagedTensor* managed) {
  if (managed == nullptr) throw InvalidArgumentError("[dlpack] expected a DLManagedTensor; got a null pointer");
  std::shared_ptr<DLManagedTensor> owner(managed, [](DLManagedTensor* taken) {
    if (taken->deleter != nullptr) taken->deleter(taken);
  });
  const DLTensor& from = managed->dl_tensor;
  if (from.device.device_type != kDLCPU) {
    throw UnimplementedError(StrCat("[dlpack] expected memory of device type ", static_cast<int>(kDLCPU),
                                    " (memory of the host); got device type ",
                                    static_cast<int>(from.device.device_type), ", device ", from.device.device_id,
                                    "; copy the tensor to the host first"));
  }
  const DType dtype = DTypeFromDLPack(from.dtype);
  const size_t element = DTypeSize(dtype);
  const Shape shape = ShapeFromDLPack(from);
  if (BytesInForeignMemory(dtype, shape) == 0) return Tensor(dtype, shape);
  if (from.data == nullptr) {
    throw InvalidArgumentError(StrCat("[dlpack] expected memory with ", dtype, shape, "; got a null pointer"));
  }
  char* data = static_cast<char*>(from.data) + from.byte_offset;
  const bool row_major = IsRowMajor(from);
  if (row_major && reinterpret_cast<uintptr_t>(data) % element == 0) {
    return Tensor::FromBlob(data, dtype, shape, [owner = std::move(owner)]() mutable { owner.reset(); });
  }
  Tensor copy(dtype, shape);
  if (row_major) {
    std::memcpy(copy.raw_data(), data, copy.bytes());
  } else {
    CopyStrided(from, 0, data, element, static_cast<char*>(copy.raw_data()));
  }
  return copy;
}

DLManagedTensor* ToDLPack(const Tensor& tensor) {
  CheckCanLeave(tensor);
  auto out = std::make_unique<Export>();
  out->tensor = tensor;
  const int rank = tensor.shape().rank();
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    out->shape[static_cast<size_t>(i)] = tensor.shape().dim(i);
    out->strides[static_cast<size_t>(i)] = stride;
    stride *= tensor.shape().dim(i);
  }
  DLTensor& to = out->managed.dl_tensor;
  to.data = out->tensor.raw_data();
  to.device = {kDLCPU, 0};
  to.ndim = rank;
  for (const TypePair& pair : kTypes) {
    if (pair.dtype == tensor.dtype()) to.dtype = {pair.code, pair.bits, 1};
  }
  to.shape = out->shape.data();
  to.strides = out->strides.data();
  to.byte_offset = 0;
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); };
  return &out.release()->managed;
}

}  // namespace cohort
