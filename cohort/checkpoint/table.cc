#include "cohort/checkpoint/table.h"

#include <leveldb/comparator.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kBlockTrailerBytes = 5;
constexpr size_t kMinBlockBytes = 8;  // one restart and their count
// Keys share their beginnings, and blocks may be packed. All keys and values together may have so many times the bytes
// of the file, or so many bytes if the file is small.
constexpr uint64_t kMaxGrowth = 64;
constexpr uint64_t kAlwaysAllowed = uint64_t{64} << 20;
constexpr uint64_t kMagic = 0xdb4775248b80fb57u;

leveldb::Options TableOptions() {
  leveldb::Options options;
  options.comparator = leveldb::BytewiseComparator();
  options.compression = leveldb::kNoCompression;
  options.block_size = 262144;
  options.block_restart_interval = 16;
  options.paranoid_checks = true;
  return options;
}

class StringSink final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

// Remembers the last block that was read, because an error is in that block.
class StringSource final : public leveldb::RandomAccessFile {
 public:
  explicit StringSource(std::string_view bytes) : bytes_(bytes) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char*) const override {
    last_offset = offset;
    if (n < kMinBlockBytes + kBlockTrailerBytes || offset > bytes_.size() || n > bytes_.size() - offset) {
      return leveldb::Status::Corruption("a block handle points outside the file");
    }
    *result = leveldb::Slice(bytes_.data() + offset, n);
    return leveldb::Status::OK();
  }

  mutable uint64_t last_offset = 0;

 private:
  std::string_view bytes_;
};

// Returns false if `bytes` ends inside the number or if the number is longer than 64 bits.
bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7fu) << shift;
    if (byte < 0x80u) return true;
  }
  return false;
}

// The footer has no checksum of its own, so its two block handles are checked before anything follows them.
void CheckFooter(std::string_view bytes, const std::string& file_name) {
  const auto fail = [&](const auto&... what) {
    throw DataLossError(StrCat("[checkpoint] the index file ", file_name, " (", bytes.size(), " bytes) is ", what...));
  };
  if (bytes.size() < kFooterBytes) fail("truncated: a table has a footer of ", kFooterBytes, " bytes");
  const uint64_t footer_at = bytes.size() - kFooterBytes;
  uint64_t magic;
  std::memcpy(&magic, bytes.data() + bytes.size() - sizeof(magic), sizeof(magic));
  if (magic != kMagic) fail("truncated or no table: wrong magic number at offset ", bytes.size() - sizeof(magic));
  std::string_view handles = bytes.substr(footer_at, kFooterBytes - sizeof(magic));
  for (const char* block : {"metaindex", "index"}) {
    uint64_t offset;
    uint64_t size;
    if (!TakeVarint(&handles, &offset) || !TakeVarint(&handles, &size) || offset > footer_at ||
        size > footer_at - offset || size < kMinBlockBytes || footer_at - offset - size < kBlockTrailerBytes) {
      fail("corrupt: the footer at offset ", footer_at, " places the ", block, " block outside the file");
    }
  }
}

[[noreturn]] void ThrowCorrupt(const std::string& file_name, uint64_t offset, const std::string& why) {
  throw DataLossError(
      StrCat("[checkpoint] the index file ", file_name, " is corrupt in its block at offset ", offset, ": ", why));
}

TableEntries ReadEntries(const std::string& bytes, const std::string& file_name) {
  const StringSource source(bytes);
  leveldb::Table* opened = nullptr;
  const leveldb::Status status =
      leveldb::Table::Open(TableOptions(), const_cast<StringSource*>(&source), bytes.size(), &opened);
  const std::unique_ptr<leveldb::Table> table(opened);
  if (!status.ok()) ThrowCorrupt(file_name, source.last_offset, status.ToString());

  leveldb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  const std::unique_ptr<leveldb::Iterator> it(table->NewIterator(read));
  TableEntries entries;
  const uint64_t most = std::max(kAlwaysAllowed, bytes.size() * kMaxGrowth);
  uint64_t total = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    total += it->key().size() + it->value().size();
    if (total > most) {
      ThrowCorrupt(
          file_name, source.last_offset,
          StrCat("it unpacks to more than the ", most, " bytes that a file of ", bytes.size(), " bytes may have"));
    }
    // A block that is listed twice would be read twice.
    if (!entries.empty() && it->key().compare(entries.back().first) <= 0) {
      ThrowCorrupt(file_name, source.last_offset, "its keys are not in ascending order");
    }
    entries.emplace_back(it->key().ToString(), it->value().ToString());
  }
  if (!it->status().ok()) ThrowCorrupt(file_name, source.last_offset, it->status().ToString());
  return entries;
}

}  // namespace

std::string EncodeTable(const TableEntries& entries) {
  const leveldb::Options options = TableOptions();
  StringSink sink;
  leveldb::TableBuilder builder(options, &sink);
  for (const auto& [key, value] : entries) {
    // TensorFlow gives very large entries a block of their own.
    if (key.size() + value.size() >= 2 * options.block_size) builder.Flush();
    builder.Add(key, value);
  }
  const leveldb::Status status = builder.Finish();
  if (!status.ok()) throw InternalError(StrCat("[checkpoint] cannot build an index: ", status.ToString()));
  return std::move(sink.bytes);
}

TableEntries DecodeTable(const std::string& bytes, const std::string& file_name) {
  CheckFooter(bytes, file_name);
  try {
    return ReadEntries(bytes, file_name);
  } catch (const std::bad_alloc&) {  // a handle that claims more than there is memory
    throw DataLossError(
        StrCat("[checkpoint] the index file ", file_name, " is corrupt: it claims a block of impossible size"));
  }
}

}  // namespace cohort
