// Scratch: memory that the work of one call uses. ElementTypeOf, FillZero: small things that several kernels need.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

// Memory of the call's device, aligned to 256 bytes. It is free again, in the order of the stream, when the object
// ends: so the object may end as soon as the work that uses it is enqueued.
class Scratch {
 public:
  Scratch(const CudaCall& call, size_t bytes) {
    constexpr uintptr_t kAlignment = 256;
    if (bytes == 0) return;
    memory_ = call.ctx().AllocateTemp(DType::kUint8, Shape{static_cast<int64_t>(bytes + kAlignment - 1)});
    const auto address = reinterpret_cast<uintptr_t>(memory_.raw_data());
    data_ = reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }
  void* data() const { return data_; }  // null if there are no bytes

 private:
  Tensor memory_;
  void* data_ = nullptr;
};

// Throws InternalError for a dtype that kernels of the dialect do not have.
inline ElementType ElementTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return ElementType::kFloat32;
    case DType::kFloat64: return ElementType::kFloat64;
    case DType::kBfloat16: return ElementType::kBfloat16;
    case DType::kInt32: return ElementType::kInt32;
    case DType::kInt64: return ElementType::kInt64;
    case DType::kUint8: return ElementType::kUint8;
    case DType::kBool: return ElementType::kBool;
    default: throw InternalError(StrCat("[backends/cuda] expected numbers or truth values for a kernel; got ", dtype));
  }
}

// Enqueues that all elements become 0.
inline void FillZero(const CudaCall& call, Tensor& tensor) {
  if (tensor.bytes() > 0) call.driver().FillAsync(tensor.raw_data(), 0, tensor.bytes(), call.stream());
}

}  // namespace cohort::cuda
