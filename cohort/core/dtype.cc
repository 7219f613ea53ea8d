#include "cohort/core/dtype.h"

#include <array>
#include <ostream>

namespace cohort {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::string_view tensorflow_name;
  size_t size;
};

constexpr std::array<Row, 10> kRows = {{
    {DType::kFloat32, "float32", "float", 4},
    {DType::kFloat64, "float64", "double", 8},
    {DType::kInt32, "int32", "int32", 4},
    {DType::kUint8, "uint8", "uint8", 1},
    {DType::kString, "string", "string", 0},
    {DType::kInt64, "int64", "int64", 8},
    {DType::kBool, "bool", "bool", 1},
    {DType::kBfloat16, "bfloat16", "bfloat16", 2},
    {DType::kResource, "resource", "resource", 0},
    {DType::kVariant, "variant", "variant", 0},
}};

const Row* Find(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

size_t DTypeSize(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kFloat64:
    case DType::kInt64: return 8;
    case DType::kUint8:
    case DType::kBool: return 1;
    case DType::kBfloat16: return 2;
    default: return 0;
  }
}

std::string_view DTypeName(DType dtype) {
  const Row* row = Find(dtype);
  return row == nullptr ? "invalid" : row->name;
}

DType DTypeFromName(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name || row.tensorflow_name == name) return row.dtype;
  }
  return DType::kInvalid;
}

bool IsKnownDType(int32_t number) { return Find(static_cast<DType>(number)) != nullptr; }

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBfloat16;
}

bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint8; }

bool IsHandle(DType dtype) { return dtype == DType::kResource || dtype == DType::kVariant; }

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << DTypeName(dtype); }

}  // namespace cohort
