// Tensor: a dtype, a fully defined shape and a shared buffer. Copying shares the bytes; nothing is copied on write,
// so whoever writes into a tensor makes sure that nobody else holds it.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/buffer.h"
#include "cohort/core/dtype.h"
#include "cohort/core/export.h"
#include "cohort/core/shape.h"

namespace cohort {

class COHORT_EXPORT Tensor {
 public:
  Tensor() = default;  // no tensor: dtype kInvalid
  // Uninitialised elements (strings: empty ones) from `allocator`. Throws InvalidArgumentError for a shape that is
  // not fully defined, ResourceExhaustedError where memory lacks.
  Tensor(DType dtype, const Shape& shape, Allocator& allocator);
  Tensor(DType dtype, const Shape& shape) : Tensor(dtype, shape, HostAllocator()) {}
  // A view of `buffer` from `byte_offset`; the caller vouches that it is large enough.
  Tensor(DType dtype, const Shape& shape, BufferPtr buffer, size_t byte_offset);

  template <typename T>
  static Tensor Scalar(T value) {
    Tensor tensor(kDTypeOf<T>, Shape());
    *tensor.data<T>() = std::move(value);
    return tensor;
  }
  static Tensor Scalar(const char* text) { return Scalar(std::string(text)); }
  // Throws InvalidArgumentError when the count of values is not the shape's.
  template <typename T>
  static Tensor FromValues(std::span<const T> values, const Shape& shape);
  template <typename T>
  static Tensor FromValues(const std::vector<T>& values, const Shape& shape) {
    return FromValues(std::span<const T>(values), shape);
  }
  // Rank 1.
  template <typename T>
  static Tensor Vector(const std::vector<T>& values) {
    return FromValues(values, Shape{static_cast<int64_t>(values.size())});
  }
  // All bytes zero (strings: empty).
  static Tensor Zeros(DType dtype, const Shape& shape);
  // A tensor over memory of the program: elements in row-major order from `data` on. No byte is copied. Kernels read
  // the memory and never write into it; the program must not change it while a step may read it. Calls `deleter`
  // exactly once: when the last tensor on the memory goes, on the thread that lets go of it, or before FromBlob throws.
  // The deleter must not throw. It may be empty; then the memory has to outlive all tensors on it. Throws
  // InvalidArgumentError for strings and handles, for a shape that is not fully defined or too large to address, for a
  // null pointer to one or more elements, and for memory that is not aligned to the size of an element. Kernels need no
  // stricter alignment; 64 bytes are the fastest.
  static Tensor FromBlob(void* data, DType dtype, const Shape& shape, std::function<void()> deleter);

  // Gives up the buffer; afterwards not defined().
  void Reset() {
    buffer_ = BufferPtr();
    dtype_ = DType::kInvalid;
    num_elements_ = 0;
    data_ = nullptr;
  }

  bool defined() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  size_t bytes() const { return static_cast<size_t>(num_elements_) * DTypeSize(dtype_); }
  MemorySpace space() const { return buffer_ ? buffer_->space() : MemorySpace::Host(); }

  // The elements in row-major order. Throws InternalError where T is not the dtype.
  template <typename T>
  T* data() {
    CheckType(kDTypeOf<T>);
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    CheckType(kDTypeOf<T>);
    return static_cast<const T*>(data_);
  }
  template <typename T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(num_elements_)};
  }
  void* raw_data() { return data_; }
  const void* raw_data() const { return data_; }
  // The one element. Throws InvalidArgumentError where there is not exactly one of type T.
  template <typename T>
  const T& scalar() const {
    CheckScalar(kDTypeOf<T>);
    return *static_cast<const T*>(data_);
  }
  template <typename T>
  std::vector<T> ToVector() const {
    return std::vector<T>(data<T>(), data<T>() + num_elements_);
  }

  // Rows [begin, end) of axis 0, sharing the bytes. Throws OutOfRangeError.
  Tensor Slice(int64_t begin, int64_t end) const;
  // The same elements under another shape of as many elements. Throws InvalidArgumentError.
  Tensor Reshaped(const Shape& shape) const;
  // A copy of its own (host tensors only).
  Tensor Clone() const;

  const BufferPtr& buffer() const { return buffer_; }
  // True if this is the only tensor on its buffer, and the buffer is not foreign memory.
  bool OwnsBufferAlone() const { return buffer_ && buffer_->IsUnique(); }

  // "float32[2,2] [1, 2, 3, ...]", at most `max_values` values.
  std::string ToString(int max_values = 8) const;

 private:
  void CheckType(DType expected) const {
    if (dtype_ != expected) [[unlikely]]
      FailType(expected);
  }
  [[noreturn]] void FailType(DType expected) const;
  void CheckScalar(DType expected) const;
  static void CheckCount(size_t values, const Shape& shape);

  DType dtype_ = DType::kInvalid;
  Shape shape_;
  int64_t num_elements_ = 0;
  BufferPtr buffer_;
  void* data_ = nullptr;
};

template <typename T>
Tensor Tensor::FromValues(std::span<const T> values, const Shape& shape) {
  CheckCount(values.size(), shape);
  Tensor tensor(kDTypeOf<T>, shape);
  T* out = tensor.data<T>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
  return tensor;
}
template <>
inline Tensor Tensor::FromValues<bool>(const std::vector<bool>& values, const Shape& shape) {
  CheckCount(values.size(), shape);
  Tensor tensor(DType::kBool, shape);
  bool* out = tensor.data<bool>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
  return tensor;
}

}  // namespace cohort
