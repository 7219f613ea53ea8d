// DType: the type of a tensor's elements. The numbers are those of TensorFlow's DataType. GraphDefs, checkpoints and
// messages between tasks contain these numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/bfloat16.h"
#include "cohort/core/export.h"

namespace cohort {

enum class DType : int32_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kString = 7,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kResource = 20,  // a handle of a resource, such as a variable; never written to a file or a message
  kVariant = 21,   // a list of tensors (device/tensor_list.h); never written to a file or a message
};

// Returns the bytes of one element. Returns 0 for kString, kResource and kVariant, because their elements are objects.
COHORT_EXPORT size_t DTypeSize(DType dtype);
// Returns the name that Keras and numpy use: "float32", "int64", ... Returns "invalid" for kInvalid.
COHORT_EXPORT std::string_view DTypeName(DType dtype);
// Returns the dtype with this name, or kInvalid if there is none. Accepts TensorFlow's "float" and "double" too.
COHORT_EXPORT DType DTypeFromName(std::string_view name);
// Returns whether `number` is the number of a DType other than kInvalid.
COHORT_EXPORT bool IsKnownDType(int32_t number);
COHORT_EXPORT bool IsFloating(DType dtype);  // float32, float64, bfloat16
COHORT_EXPORT bool IsInteger(DType dtype);   // int32, int64, uint8
COHORT_EXPORT bool IsHandle(DType dtype);    // resource and variant: their elements refer to objects of this process
COHORT_EXPORT std::ostream& operator<<(std::ostream& out, DType dtype);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<std::string> {
  static constexpr DType value = DType::kString;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::kBfloat16;
};
template <typename T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace cohort
