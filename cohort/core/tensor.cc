#include "cohort/core/tensor.h"

#include <cstring>
#include <memory>
#include <new>

#include "cohort/core/error.h"
#include "cohort/core/foreign_memory.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The buffer of a string tensor: an array of std::string.
class StringBuffer final : public Buffer {
 public:
  explicit StringBuffer(size_t count) : Buffer(nullptr, count, MemorySpace::Host()), strings_(new std::string[count]) {
    data_ = strings_.get();
  }

 private:
  void Destroy() override { delete this; }
  std::unique_ptr<std::string[]> strings_;
};

// Memory of the program, which gets it back through its deleter.
class ForeignBuffer final : public Buffer {
 public:
  ForeignBuffer(void* data, std::function<void()> deleter)
      : Buffer(data, 0, MemorySpace::Host()), deleter_(std::move(deleter)) {
    refs_.store(kForeign | 1, std::memory_order_relaxed);
  }
  void set_size(size_t size) { size_ = size; }

 private:
  void Destroy() override {
    if (deleter_) deleter_();
    delete this;
  }
  std::function<void()> deleter_;
};

// Returns the bytes of a tensor at `data`. Throws if no tensor can lie there.
size_t CheckedBytesOfBlob(const void* data, DType dtype, const Shape& shape) {
  const size_t bytes = BytesInForeignMemory(dtype, shape);
  if (bytes == 0) return 0;
  const size_t size = DTypeSize(dtype);
  if (data == nullptr || reinterpret_cast<uintptr_t>(data) % size != 0) {
    throw InvalidArgumentError(StrCat("[tensor] expected ", dtype, shape, " in memory aligned to ", size,
                                      " bytes; got the address ", data, "; copy the elements into a tensor"));
  }
  return bytes;
}

BufferPtr AllocateFor(DType dtype, const Shape& shape, int64_t count, Allocator& allocator) {
  if (count < 0) throw InvalidArgumentError(StrCat("[tensor] a tensor needs a fully defined shape; got ", shape));
  const size_t size = dtype == DType::kString ? sizeof(std::string) : DTypeSize(dtype);
  if (size == 0) throw InvalidArgumentError(StrCat("[tensor] no tensor of dtype ", dtype, " can be made"));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), size, &bytes)) {
    throw InvalidArgumentError(StrCat("[tensor] expected a tensor of fewer than 2^64 bytes; got ", dtype, shape));
  }
  if (dtype == DType::kString) {
    try {
      return BufferPtr::Adopt(new StringBuffer(static_cast<size_t>(count)));
    } catch (const std::bad_alloc&) {
      throw ResourceExhaustedError(
          StrCat("[tensor] expected host memory for ", count, " strings; there is too little; shape ", shape));
    }
  }
  return allocator.Allocate(bytes);
}

template <typename T>
void PrintValues(std::ostream& out, const Tensor& tensor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) out << ", ";
    if constexpr (std::is_same_v<T, uint8_t>) {
      out << static_cast<int>(tensor.data<T>()[i]);
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      out << static_cast<float>(tensor.data<T>()[i]);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out << '"' << tensor.data<T>()[i] << '"';
    } else if constexpr (std::is_same_v<T, bool>) {
      out << (tensor.data<T>()[i] ? "true" : "false");
    } else {
      out << tensor.data<T>()[i];
    }
  }
}

}  // namespace

size_t BytesInForeignMemory(DType dtype, const Shape& shape) {
  const size_t size = DTypeSize(dtype);
  if (size == 0) {
    throw InvalidArgumentError(
        StrCat("[tensor] expected foreign memory of numbers or bools; got dtype ", dtype, "; copy such elements"));
  }
  if (!shape.IsFullyDefined()) {
    throw InvalidArgumentError(StrCat("[tensor] expected a fully defined shape of foreign memory; got ", shape));
  }
  size_t bytes = size;  // without the dimensions that are 0
  bool empty = false;
  bool too_large = false;
  for (const int64_t dim : shape.dims()) {
    empty = empty || dim == 0;
    if (dim > 0) too_large = too_large || __builtin_mul_overflow(bytes, static_cast<size_t>(dim), &bytes);
  }
  if (too_large || bytes > (size_t{1} << 60)) {
    throw InvalidArgumentError(StrCat("[tensor] expected foreign memory of at most 2^60 bytes; got ", dtype, shape));
  }
  return empty ? 0 : bytes;
}

Tensor::Tensor(DType dtype, const Shape& shape, Allocator& allocator)
    : dtype_(dtype),
      shape_(shape),
      num_elements_(shape.num_elements()),
      buffer_(AllocateFor(dtype, shape, num_elements_, allocator)),
      data_(buffer_->data()) {}

Tensor::Tensor(DType dtype, const Shape& shape, BufferPtr buffer, size_t byte_offset)
    : dtype_(dtype),
      shape_(shape),
      num_elements_(shape.num_elements()),
      buffer_(std::move(buffer)),
      data_(static_cast<char*>(buffer_->data()) + byte_offset) {}

Tensor Tensor::Zeros(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype != DType::kString) std::memset(tensor.data_, 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::FromBlob(void* data, DType dtype, const Shape& shape, std::function<void()> deleter) {
  auto* foreign = new ForeignBuffer(data, std::move(deleter));
  BufferPtr buffer = BufferPtr::Adopt(foreign);  // calls the deleter when it ends, also if a check throws
  foreign->set_size(CheckedBytesOfBlob(data, dtype, shape));
  return Tensor(dtype, shape, std::move(buffer), 0);
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  if (shape_.rank() < 1 || begin < 0 || begin > end || end > shape_.dim(0)) {
    throw OutOfRangeError(StrCat("[tensor] rows [", begin, ",", end, ") of a tensor of shape ", shape_));
  }
  Tensor slice = *this;
  const int64_t row = shape_.Sub(1, shape_.rank()).num_elements();
  slice.shape_.set_dim(0, end - begin);
  slice.num_elements_ = row * (end - begin);
  const size_t element = dtype_ == DType::kString ? sizeof(std::string) : DTypeSize(dtype_);
  slice.data_ = static_cast<char*>(data_) + static_cast<size_t>(begin * row) * element;
  return slice;
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements_) {
    throw InvalidArgumentError(
        StrCat("[tensor] cannot reshape ", shape_, " (", num_elements_, " elements) to ", shape));
  }
  Tensor other = *this;
  other.shape_ = shape;
  return other;
}

Tensor Tensor::Clone() const {
  Tensor copy(dtype_, shape_);
  if (dtype_ == DType::kString) {
    const std::string* from = data<std::string>();
    std::copy(from, from + num_elements_, copy.data<std::string>());
  } else if (bytes() > 0) {
    std::memcpy(copy.data_, data_, bytes());
  }
  return copy;
}

std::string Tensor::ToString(int max_values) const {
  if (!defined()) return "<no tensor>";
  std::ostringstream out;
  out << dtype_ << shape_ << " [";
  if (!space().is_host() || IsHandle(dtype_)) {
    out << "...";
  } else {
    const int64_t count = std::min<int64_t>(max_values, num_elements_);
    switch (dtype_) {
      case DType::kFloat32: PrintValues<float>(out, *this, count); break;
      case DType::kFloat64: PrintValues<double>(out, *this, count); break;
      case DType::kInt32: PrintValues<int32_t>(out, *this, count); break;
      case DType::kInt64: PrintValues<int64_t>(out, *this, count); break;
      case DType::kUint8: PrintValues<uint8_t>(out, *this, count); break;
      case DType::kBool: PrintValues<bool>(out, *this, count); break;
      case DType::kBfloat16: PrintValues<bfloat16>(out, *this, count); break;
      case DType::kString: PrintValues<std::string>(out, *this, count); break;
      default: break;
    }
    if (count < num_elements_) out << ", ...";
  }
  out << "]";
  return std::move(out).str();
}

void Tensor::FailType(DType expected) const {
  throw InternalError(StrCat("[tensor] ", dtype_, shape_, " was accessed as ", expected));
}

void Tensor::CheckScalar(DType expected) const {
  if (dtype_ != expected || num_elements_ != 1) {
    throw InvalidArgumentError(StrCat("[tensor] expected one ", expected, "; got ", dtype_, shape_));
  }
}

void Tensor::CheckCount(size_t values, const Shape& shape) {
  if (static_cast<int64_t>(values) != shape.num_elements()) {
    throw InvalidArgumentError(StrCat("[tensor] ", values, " values do not fill a tensor of shape ", shape));
  }
}

}  // namespace cohort
