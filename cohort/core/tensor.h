// Tensor: a dtype, a fully defined shape, and a reference to a buffer with the elements. A copy of a tensor shares the
// buffer. So code that writes into a tensor must make sure that no other tensor uses the buffer.
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

// An array of elements of one dtype. A value type. One Tensor must not be changed while another thread uses it, but
// each thread may use a copy of its own. Access to the elements, which all copies share, is not synchronized.
class COHORT_EXPORT Tensor {
 public:
  Tensor() = default;  // an undefined tensor: dtype kInvalid
  // Makes a tensor with uninitialized elements; strings are empty. Throws InvalidArgumentError if the shape is not
  // fully defined, if the size overflows, or if the dtype is kInvalid or a handle. Throws ResourceExhaustedError if
  // there is not enough memory.
  Tensor(DType dtype, const Shape& shape, Allocator& allocator);
  Tensor(DType dtype, const Shape& shape) : Tensor(dtype, shape, HostAllocator()) {}
  // Makes a tensor whose elements begin at `byte_offset` of `buffer`. Requires: the buffer is large enough.
  Tensor(DType dtype, const Shape& shape, BufferPtr buffer, size_t byte_offset);

  template <typename T>
  static Tensor Scalar(T value) {
    Tensor tensor(kDTypeOf<T>, Shape());
    *tensor.data<T>() = std::move(value);
    return tensor;
  }
  static Tensor Scalar(const char* text) { return Scalar(std::string(text)); }
  // Throws InvalidArgumentError if the number of values is not that of the shape.
  template <typename T>
  static Tensor FromValues(std::span<const T> values, const Shape& shape);
  template <typename T>
  static Tensor FromValues(const std::vector<T>& values, const Shape& shape) {
    return FromValues(std::span<const T>(values), shape);
  }
  // Returns a tensor of rank 1.
  template <typename T>
  static Tensor Vector(const std::vector<T>& values) {
    return FromValues(values, Shape{static_cast<int64_t>(values.size())});
  }
  // Returns a tensor in host memory whose bytes are all zero; strings are empty.
  static Tensor Zeros(DType dtype, const Shape& shape);
  // Returns a tensor that uses memory of the program. The memory begins at `data` and contains the elements of the
  // tensor in row-major order. No byte is copied. Kernels read the memory and never write into it. The program must not
  // change it while a step may read it. Calls `deleter` exactly once: on the thread that lets go of the last tensor on
  // the memory, or before FromBlob throws. The deleter must not throw. It may be empty; then the memory has to outlive
  // all tensors on it. Throws InvalidArgumentError for strings and handles, for a shape that is not fully defined or is
  // larger than 2^60 bytes, for memory that is not aligned to the size of an element, and for a null pointer if the
  // shape has elements. Kernels need no stricter alignment.
  static Tensor FromBlob(void* data, DType dtype, const Shape& shape, std::function<void()> deleter);

  // Releases the buffer. Afterwards the tensor is not defined().
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
  // Returns the size of the elements in bytes, or 0 for strings and handles.
  size_t bytes() const { return static_cast<size_t>(num_elements_) * DTypeSize(dtype_); }
  MemorySpace space() const { return buffer_ ? buffer_->space() : MemorySpace::Host(); }

  // Returns the elements in row-major order. Throws InternalError if T is not the C++ type of dtype(). The program may
  // read them only if space() is the host.
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
  // Returns the only element, which must lie in host memory. Throws InvalidArgumentError if there is not exactly one
  // element or if T is not the C++ type of dtype().
  template <typename T>
  const T& scalar() const {
    CheckScalar(kDTypeOf<T>);
    return *static_cast<const T*>(data_);
  }
  template <typename T>
  std::vector<T> ToVector() const {
    return std::vector<T>(data<T>(), data<T>() + num_elements_);
  }

  // Returns the rows [begin, end) of axis 0. The result shares the bytes. Throws OutOfRangeError if the tensor lacks
  // these rows, or is a scalar.
  Tensor Slice(int64_t begin, int64_t end) const;
  // Returns the same elements with another shape. The result shares the bytes. Throws InvalidArgumentError if the
  // number of elements differs.
  Tensor Reshaped(const Shape& shape) const;
  // Returns a tensor with a copy of the elements. Requires: the tensor lies in host memory and is no handle.
  Tensor Clone() const;

  const BufferPtr& buffer() const { return buffer_; }
  // Returns true if no other tensor and nothing else holds the buffer. The tensor may be only a part of the buffer.
  // Always returns false for a tensor of FromBlob.
  bool OwnsBufferAlone() const { return buffer_ && buffer_->IsUnique(); }

  // Returns, for example, "float32[2,2] [1, 2, 3, ...]", with at most `max_values` values. Shows no values of handles
  // and of tensors outside host memory.
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
