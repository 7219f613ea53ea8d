#include "cohort/data/readers/idx.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/input_file.h"

namespace cohort::data {
namespace {

constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;
constexpr uint32_t kAnyMagic = 0;

std::string Hex(uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof(text), "0x%08x", value);
  return text;
}

uint32_t ReadBigEndian(InputFile* file, const char* what) {
  char bytes[4];
  const size_t count = file->Read(bytes);
  if (count < sizeof(bytes)) {
    throw DataLossError(
        StrCat("[data] the IDX file ", file->path(), " is cut off in its ", what, ": expected 4 bytes, got ", count));
  }
  uint32_t value = 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<unsigned char>(byte);
  return value;
}

DType TypeOf(uint32_t magic, const std::string& path) {
  switch (magic >> 8) {
    case 0x08: return DType::kUint8;
    case 0x0c: return DType::kInt32;
    case 0x0d: return DType::kFloat32;
    case 0x0e: return DType::kFloat64;
    case 0x09:
    case 0x0b:
      throw UnimplementedError(StrCat("[data] the IDX file ", path, " holds 8 or 16 bit signed integers (magic ",
                                      Hex(magic), "), which we lack"));
    default:
      throw InvalidArgumentError(
          StrCat("[data] expected an IDX file, whose magic number is 0x0000 with a type (08 uint8, "
                 "0c int32, 0d float32, 0e float64) and a rank; got ",
                 Hex(magic), " in ", path));
  }
}

// Returns the header's dimensions. Throws if the file cannot contain that many bytes.
Shape ReadShape(InputFile* file, uint32_t magic, DType dtype) {
  Shape shape;
  const auto rank = static_cast<int>(magic & 0xffu);
  if (rank > Shape::kMaxRank) {
    throw InvalidArgumentError(StrCat("[data] the IDX file ", file->path(), " has ", rank, " dimensions (magic ",
                                      Hex(magic), "); at most ", Shape::kMaxRank, " are supported"));
  }
  for (int i = 0; i < rank; ++i) shape.AddDim(ReadBigEndian(file, "dimensions"));
  const int64_t most = std::min(file->MaxSize(), file->MaxValueBytes());
  int64_t bytes = static_cast<int64_t>(DTypeSize(dtype));
  for (const int64_t dim : shape.dims()) {
    if (dim > 0 && bytes > most / dim) {
      throw DataLossError(StrCat("[data] the IDX file ", file->path(), " says that it holds ", shape, " of ", dtype,
                                 "; expected at most the ", most, " bytes that a file of its size may contain"));
    }
    bytes *= dim;
  }
  return shape;
}

void SwapBytes(Tensor* tensor) {
  const size_t width = DTypeSize(tensor->dtype());
  char* bytes = static_cast<char*>(tensor->raw_data());
  for (size_t at = 0; width > 1 && at < tensor->bytes(); at += width) std::reverse(bytes + at, bytes + at + width);
}

Tensor Read(const std::string& path, uint32_t expected_magic) {
  InputFile file(path);
  const uint32_t magic = ReadBigEndian(&file, "magic number");
  if (expected_magic != kAnyMagic && magic != expected_magic) {
    throw InvalidArgumentError(
        StrCat("[data] expected magic number ", Hex(expected_magic), " in ", path, "; got ", Hex(magic)));
  }
  const DType dtype = TypeOf(magic, path);
  const Shape shape = ReadShape(&file, magic, dtype);
  Tensor tensor(dtype, shape);
  const size_t count = file.Read({static_cast<char*>(tensor.raw_data()), tensor.bytes()});
  if (count < tensor.bytes()) {
    throw DataLossError(StrCat("[data] the IDX file ", path, " is cut off: expected ", tensor.bytes(), " bytes for ",
                               shape, ", got ", count));
  }
  char more;
  if (file.Read({&more, 1}) > 0) {
    throw DataLossError(StrCat("[data] the IDX file ", path, " is longer than its header says: expected ",
                               tensor.bytes(), " bytes for ", shape, ", got more"));
  }
  SwapBytes(&tensor);
  return tensor;
}

}  // namespace

Tensor ReadIdx(const std::string& path) { return Read(path, kAnyMagic); }
Tensor ReadIdxImages(const std::string& path) { return Read(path, kImagesMagic); }
Tensor ReadIdxLabels(const std::string& path) { return Read(path, kLabelsMagic); }

void WriteIdx(const std::string& path, const Tensor& tensor) {
  if (tensor.dtype() != DType::kUint8) {
    throw InvalidArgumentError(
        StrCat("[data] IDX files are written of uint8; got ", tensor.ToString(0), " for ", path));
  }
  std::string bytes;
  const auto put = [&bytes](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  };
  put(0x0800u | static_cast<uint32_t>(tensor.shape().rank()));
  for (const int64_t dim : tensor.shape().dims()) {
    if (dim > std::numeric_limits<uint32_t>::max()) {
      throw InvalidArgumentError(StrCat("[data] a dimension of an IDX file fits 32 bits; got ", tensor.shape()));
    }
    put(static_cast<uint32_t>(dim));
  }
  bytes.append(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
  WriteFileAtomically(path, bytes);
}

}  // namespace cohort::data
