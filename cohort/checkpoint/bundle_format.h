// The parts of the V2 checkpoint format that the writer and the reader of tensor bundles share: names of files, the
// index, and the layout of string tensors.
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

// A tensor is written and read in pieces of at most this many bytes, so that it need not be in memory as a whole.
inline constexpr size_t kCheckpointChunkBytes = size_t{1} << 20;

// The index's record of one tensor, or of one part of a partitioned tensor.
struct BundleEntry {
  int32_t dtype_number = 0;  // TensorFlow's number
  Shape shape;               // of the whole tensor; in the record of a part, the shape of the part
  int32_t shard = 0;
  int64_t offset = 0;   // of the first byte in the data file of the shard
  int64_t size = 0;     // in bytes
  uint32_t crc32c = 0;  // of the stored bytes, not masked
  // The parts of the tensor if this is the record of a partitioned tensor, else empty. A record with parts does not use
  // `shard`, `offset`, `size` and `crc32c`.
  std::vector<TensorSlice> slices;

  // Returns kInvalid for a dtype that Cohort does not have. Such a tensor can be listed and its checksum verified, but
  // it cannot be read.
  DType dtype() const { return IsKnownDType(dtype_number) ? static_cast<DType>(dtype_number) : DType::kInvalid; }
  // Returns for example "float32". A dtype that Cohort does not have gives TensorFlow's name, such as "DT_HALF". An
  // unknown number gives "dtype 99".
  std::string dtype_name() const;
};

// The decoded index of a checkpoint.
struct BundleIndex {
  int32_t num_shards = 1;
  bool swap_bytes = false;  // true if a big-endian machine wrote the data
  // Keys: names of tensors, and binary keys (SliceKey) of the parts of partitioned tensors.
  std::map<std::string, BundleEntry, std::less<>> entries;
};

// Return "P.index", and "P.data-00000-of-00002" (for shard 0 of 2), for the prefix P.
std::string IndexFileName(const std::string& prefix);
std::string DataFileName(const std::string& prefix, int shard, int num_shards);

// Returns true if the key belongs to a part of a partitioned tensor, and false if it is the name of a tensor.
inline bool IsSliceKey(std::string_view key) { return !key.empty() && key.front() == '\0'; }

// Returns the key with every unprintable byte written as \xNN.
std::string PrintableKey(std::string_view key);

std::string EncodeIndex(const BundleIndex& index);
// Throws DataLossError if the bytes are corrupt. Throws UnimplementedError if the format is of a later version. Both
// errors name `file_name`.
BundleIndex DecodeIndex(const std::string& bytes, const std::string& file_name);

// Receives the bytes that EncodeStrings makes, piece by piece. BundleWriter has an implementation that writes to a
// file.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Append(std::string_view bytes) = 0;
};
// Writes a string tensor as varint lengths, the masked crc32c of the lengths, and the characters. Returns the crc32c
// that the tensor's index entry must have.
uint32_t EncodeStrings(const Tensor& strings, ByteSink* sink);
// Fills `out`, a string tensor whose shape is set. Throws DataLossError unless `bytes` are what EncodeStrings writes
// for one tensor of that shape, with the given crc32c. The message begins with `where`.
void DecodeStrings(std::string_view bytes, uint32_t crc32c, const std::string& where, Tensor* out);

}  // namespace cohort
