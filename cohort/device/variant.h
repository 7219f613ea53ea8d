// VariantValue: an object that a scalar tensor of dtype variant holds, such as a list of tensors, a dataset, or an
// element that may be missing.
#pragma once

#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/tensor.h"

namespace cohort {

// The base of all such objects. A tensor owns it. It never changes after it was put into a tensor, so all threads may
// read it. It never leaves its task: it is neither sent nor saved.
class VariantValue {
 public:
  virtual ~VariantValue() = default;
  // Returns a short text for error messages: "a list of 3 tensors".
  virtual std::string Describe() const = 0;
};

namespace internal {

template <typename T>
class VariantBuffer final : public Buffer {
 public:
  explicit VariantBuffer(T value) : Buffer(nullptr, sizeof(T), MemorySpace::Host()), value_(std::move(value)) {
    data_ = static_cast<VariantValue*>(&value_);
  }

 private:
  void Destroy() override { delete this; }
  T value_;
};

}  // namespace internal

// Returns a scalar tensor of dtype variant that holds `value`. T is derived from VariantValue.
template <typename T>
Tensor MakeVariant(T value) {
  return Tensor(DType::kVariant, Shape(), BufferPtr::Adopt(new internal::VariantBuffer<T>(std::move(value))), 0);
}

// Returns the object of such a tensor. It lives as long as the tensor. Throws InvalidArgumentError, which begins with
// `expected` ("[tensor list] expected a list of tensors"), if the tensor holds no T.
template <typename T>
const T& VariantOf(const Tensor& value, const char* expected) {
  const bool is_variant = value.dtype() == DType::kVariant && value.raw_data() != nullptr;
  const auto* object = is_variant ? static_cast<const VariantValue*>(value.raw_data()) : nullptr;
  const T* typed = dynamic_cast<const T*>(object);
  if (typed != nullptr) return *typed;
  throw InvalidArgumentError(
      StrCat(expected, "; got ", object != nullptr ? object->Describe() : StrCat(value.dtype(), value.shape())));
}

}  // namespace cohort
