// The V2 checkpoint format. The index is a sorted table of protobuf messages: a header with the key "", and one entry
// for each tensor or part. IndexDecoder checks each entry before it is used. A string tensor has varint lengths, the
// checksum of the lengths, and then the characters.
#include "cohort/checkpoint/bundle_format.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <limits>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/checkpoint.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are written little-endian");

constexpr int kVersion = 1;

std::string EncodeEntry(const BundleEntry& entry) {
  proto::BundleEntryProto message;
  message.set_dtype(static_cast<proto::DataType>(entry.dtype_number));
  ToProto(entry.shape, message.mutable_shape());
  if (entry.slices.empty()) {
    message.set_shard_id(entry.shard);
    message.set_offset(entry.offset);
    message.set_size(entry.size);
    message.set_crc32c(crc32c::Mask(entry.crc32c));
  }
  for (const TensorSlice& slice : entry.slices) {
    proto::TensorSliceProto* out = message.add_slices();
    for (const TensorSlice::Extent& extent : slice.extents) {
      proto::TensorSliceProto::Extent* to = out->add_extent();
      to->set_start(extent.start);
      if (extent.length != TensorSlice::kWhole) to->set_length(extent.length);
    }
  }
  return message.SerializeAsString();
}

class IndexDecoder {
 public:
  explicit IndexDecoder(const std::string& file_name) : file_name_(file_name) {}

  void DecodeHeader(const std::string& value, BundleIndex* index) const {
    proto::BundleHeaderProto header;
    if (!header.ParseFromString(value) || header.num_shards() < 1) Fail("", "is no header with a count of shards");
    if (header.version().min_consumer() > kVersion) {
      throw UnimplementedError(StrCat("[checkpoint] ", file_name_, " can only be read by version ",
                                      header.version().min_consumer(), " of the format or later; we have ", kVersion));
    }
    index->num_shards = header.num_shards();
    index->swap_bytes = header.endianness() == proto::BundleHeaderProto::BIG;
  }

  BundleEntry DecodeEntry(const std::string& key, const std::string& value, int num_shards) const {
    proto::BundleEntryProto message;
    if (!message.ParseFromString(value)) Fail(key, "is no BundleEntryProto");
    BundleEntry entry;
    entry.dtype_number = message.dtype();
    try {
      entry.shape = FromProto(message.shape());
    } catch (const InvalidArgumentError& error) {
      Fail(key, error.what());
    }
    if (!entry.shape.IsFullyDefined()) Fail(key, StrCat("has shape ", entry.shape));
    entry.shard = message.shard_id();
    entry.offset = message.offset();
    entry.size = message.size();
    entry.crc32c = crc32c::Unmask(message.crc32c());
    if (entry.shard < 0 || entry.shard >= num_shards || entry.offset < 0 || entry.size < 0 ||
        entry.offset > std::numeric_limits<int64_t>::max() - entry.size) {
      Fail(key, StrCat("lies at offset ", entry.offset, " with ", entry.size, " bytes in shard ", entry.shard, " of ",
                       num_shards));
    }
    for (const proto::TensorSliceProto& slice : message.slices())
      entry.slices.push_back(DecodeSlice(key, entry, slice));
    if (entry.slices.empty()) CheckSize(key, entry);
    return entry;
  }

 private:
  [[noreturn]] void Fail(const std::string& key, const std::string& what) const {
    throw DataLossError(StrCat("[checkpoint] the index file ", file_name_, " is corrupt: its entry \"",
                               PrintableKey(key), "\" ", what));
  }

  TensorSlice DecodeSlice(const std::string& key, const BundleEntry& entry,
                          const proto::TensorSliceProto& message) const {
    TensorSlice slice;
    for (const auto& extent : message.extent()) {
      const bool whole = extent.has_length_case() != proto::TensorSliceProto::Extent::kLength;
      slice.extents.push_back({extent.start(), whole ? TensorSlice::kWhole : extent.length()});
    }
    try {
      slice.ResolvedIn(entry.shape);
    } catch (const InvalidArgumentError& error) {
      Fail(key, error.what());
    }
    return slice;
  }

  void CheckSize(const std::string& key, const BundleEntry& entry) const {
    const int64_t count = entry.shape.num_elements();
    const auto element = static_cast<int64_t>(DTypeSize(entry.dtype()));
    if (element > 0 && entry.size != count * element) {
      Fail(key, StrCat("is ", entry.dtype_name(), entry.shape, " of ", count * element, " bytes but has ", entry.size));
    }
    // Each string has at least one byte for its length, and the checksum of the lengths follows.
    if (entry.dtype() == DType::kString && entry.size - 4 < count) {
      Fail(key, StrCat("is ", entry.dtype_name(), entry.shape, " but has only ", entry.size, " bytes"));
    }
  }

  const std::string& file_name_;
};

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80u; value >>= 7) out->push_back(static_cast<char>(value | 0x80u));
  out->push_back(static_cast<char>(value));
}

// A length enters the checksum as 4 bytes, or as 8 bytes if it needs them.
uint32_t ExtendByLength(uint32_t crc, uint64_t length) {
  const size_t width = length > std::numeric_limits<uint32_t>::max() ? 8 : 4;
  return crc32c::Extend(crc, {reinterpret_cast<const char*>(&length), width});
}

}  // namespace

std::string BundleEntry::dtype_name() const {
  if (dtype() != DType::kInvalid) return std::string(DTypeName(dtype()));
  if (!proto::DataType_IsValid(dtype_number)) return StrCat("dtype ", dtype_number);
  return proto::DataType_Name(static_cast<proto::DataType>(dtype_number));
}

std::string IndexFileName(const std::string& prefix) { return prefix + ".index"; }

std::string DataFileName(const std::string& prefix, int shard, int num_shards) {
  char suffix[48];
  std::snprintf(suffix, sizeof(suffix), ".data-%05d-of-%05d", shard, num_shards);
  return prefix + suffix;
}

std::string PrintableKey(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof(hex), "\\x%02x", static_cast<unsigned char>(c));
      text += hex;
    }
  }
  return text;
}

std::string EncodeIndex(const BundleIndex& index) {
  proto::BundleHeaderProto header;
  header.set_num_shards(index.num_shards);
  header.set_endianness(index.swap_bytes ? proto::BundleHeaderProto::BIG : proto::BundleHeaderProto::LITTLE);
  header.mutable_version()->set_producer(kVersion);
  TableEntries entries = {{"", header.SerializeAsString()}};
  for (const auto& [key, entry] : index.entries) entries.emplace_back(key, EncodeEntry(entry));
  return EncodeTable(entries);
}

BundleIndex DecodeIndex(const std::string& bytes, const std::string& file_name) {
  const TableEntries table = DecodeTable(bytes, file_name);
  if (table.empty() || !table.front().first.empty()) {
    throw DataLossError(StrCat("[checkpoint] the index file ", file_name, " has no header entry"));
  }
  const IndexDecoder decoder(file_name);
  BundleIndex index;
  decoder.DecodeHeader(table.front().second, &index);
  for (size_t i = 1; i < table.size(); ++i) {
    const auto& [key, value] = table[i];
    index.entries.emplace(key, decoder.DecodeEntry(key, value, index.num_shards));
  }
  return index;
}

uint32_t EncodeStrings(const Tensor& strings, ByteSink* sink) {
  std::string buffer;
  const auto flush_at = [&](size_t limit) {
    if (buffer.size() < limit) return;
    sink->Append(buffer);
    buffer.clear();
  };
  uint32_t crc = 0;
  for (const std::string& text : strings.values<std::string>()) {
    AppendVarint(text.size(), &buffer);
    crc = ExtendByLength(crc, text.size());
    flush_at(kCheckpointChunkBytes);
  }
  const uint32_t masked = crc32c::Mask(crc);
  const std::string_view masked_bytes(reinterpret_cast<const char*>(&masked), sizeof(masked));
  buffer += masked_bytes;
  crc = crc32c::Extend(crc, masked_bytes);
  for (const std::string& text : strings.values<std::string>()) {
    crc = crc32c::Extend(crc, text);
    buffer += text;
    flush_at(kCheckpointChunkBytes);
  }
  flush_at(1);
  return crc;
}

void DecodeStrings(std::string_view bytes, uint32_t crc32c, const std::string& where, Tensor* out) {
  const auto fail = [&](const auto&... what) { throw DataLossError(StrCat(where, " is corrupt: ", what...)); };
  std::string_view left = bytes;
  const auto count = static_cast<size_t>(out->num_elements());
  std::vector<uint64_t> lengths(count);
  uint32_t crc = 0;
  uint64_t total = 0;
  for (uint64_t& length : lengths) {
    unsigned shift = 0;
    for (unsigned char byte = 0x80; byte >= 0x80u; shift += 7) {
      if (left.empty() || shift > 63) fail("the lengths of its strings do not end");
      byte = static_cast<unsigned char>(left.front());
      left.remove_prefix(1);
      length |= static_cast<uint64_t>(byte & 0x7fu) << shift;
    }
    crc = ExtendByLength(crc, length);
    if (length > bytes.size()) fail("a string of ", length, " bytes");
    total += length;
  }
  uint32_t masked;
  if (left.size() < sizeof(masked)) fail("the checksum of its string lengths is missing");
  std::memcpy(&masked, left.data(), sizeof(masked));
  if (crc32c::Unmask(masked) != crc) fail("the checksum of its string lengths does not match");
  crc = crc32c::Extend(crc, left.substr(0, sizeof(masked)));
  left.remove_prefix(sizeof(masked));
  if (left.size() != total) fail("its strings have ", total, " bytes, stored are ", left.size());
  crc = crc32c::Extend(crc, left);
  if (crc != crc32c) fail("crc32c ", crc32c, " stored, ", crc, " computed");
  for (size_t i = 0; i < count; ++i) {
    out->data<std::string>()[i].assign(left.substr(0, lengths[i]));
    left.remove_prefix(lengths[i]);
  }
}

}  // namespace cohort
