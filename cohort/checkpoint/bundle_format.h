// What the writer and the reader of tensor bundles share: names of files, index entries, the layout of string
// tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/checkpoint/table.h"
#include "cohort/checkpoint/tensor_slice.h"
#include "cohort/core/dtype.h"
#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"

namespace cohort {

// Tensors stream through memory in pieces of at most this many bytes.
inline constexpr size_t kCheckpointChunkBytes = size_t{1} << 20;

// One line of a checkpoint's index.
struct BundleEntry {
  int32_t dtype_number = 0;  // TensorFlow's number
  Shape shape;               // of the whole tensor; for a part (a slice's own entry) of the part
  int32_t shard = 0;
  int64_t offset = 0;               // bytes, in the shard's data file
  int64_t size = 0;                 // bytes
  uint32_t crc32c = 0;              // not masked
  std::vector<TensorSlice> slices;  // not empty: partitioned; shard, offset, size and crc32c mean nothing

  // kInvalid for a dtype that we lack: such a tensor can be listed and its checksum verified, not read.
  DType dtype() const { return IsKnownDType(dtype_number) ? static_cast<DType>(dtype_number) : DType::kInvalid; }
  // "float32"; "DT_HALF" for one that we lack, "dtype 99" for a number that nobody knows.
  std::string dtype_name() const;
};

// The decoded index: names and, under their binary keys, parts of partitioned tensors.
struct BundleIndex {
  int32_t num_shards = 1;
  bool swap_bytes = false;  // written on a big-endian machine
  std::map<std::string, BundleEntry, std::less<>> entries;
};

// "P.index", "P.data-00000-of-00002".
std::string IndexFileName(const std::string& prefix);
std::string DataFileName(const std::string& prefix, int shard, int num_shards);

// Whether a key belongs to a part of a partitioned tensor (SliceKey) and not to a name.
inline bool IsSliceKey(std::string_view key) { return !key.empty() && key.front() == '\0'; }

// A key with its binary bytes written as \xNN.
std::string PrintableKey(std::string_view key);

std::string EncodeIndex(const BundleIndex& index);
// Throws DataLossError that names `file_name` and the key; UnimplementedError for a version later than ours.
BundleIndex DecodeIndex(const std::string& bytes, const std::string& file_name);

// Bytes [offset, offset + size) of a data file as a string tensor: varint lengths, masked crc32c of the
// lengths, characters. `append` gets the pieces; the crc32c that the entry carries is returned.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Append(std::string_view bytes) = 0;
};
uint32_t EncodeStrings(const Tensor& strings, ByteSink* sink);
// Fills `out` [any shape, string]. Throws DataLossError, its message beginning with `where`, unless `bytes`
// are exactly one such tensor with the crc32c given.
void DecodeStrings(std::string_view bytes, uint32_t crc32c, const std::string& where, Tensor* out);

}  // namespace cohort
