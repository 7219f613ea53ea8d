#include "cohort/core/record_io.h"

#include <bit>
#include <cstring>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr size_t kBufferBytes = 64 << 10;

template <typename T>
void AppendFixed(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void CheckCrc(std::string_view bytes, const char* stored, const char* what, const std::string& path, int64_t offset) {
  uint32_t masked;
  std::memcpy(&masked, stored, sizeof(masked));
  const uint32_t actual = crc32c::Value(bytes);
  if (crc32c::Unmask(masked) == actual) return;
  throw DataLossError(StrCat("[record] the ", what, " of the record at offset ", offset, " of ", path,
                             " is corrupt: crc32c ", crc32c::Unmask(masked), " stored, ", actual, " computed"));
}

// Returns the format of a file that begins with `bytes`, or "" if it does not look packed.
std::string_view CompressionOf(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return "GZIP";
  const int first = static_cast<unsigned char>(bytes[0]), second = static_cast<unsigned char>(bytes[1]);
  return first == 0x78 && (first * 256 + second) % 31 == 0 ? "ZLIB" : "";
}

}  // namespace

void EncodeRecord(std::string_view payload, std::string* out) {
  std::string length;
  AppendFixed(static_cast<uint64_t>(payload.size()), &length);
  out->append(length);
  AppendFixed(crc32c::Mask(crc32c::Value(length)), out);
  out->append(payload);
  AppendFixed(crc32c::Mask(crc32c::Value(payload)), out);
}

uint64_t DecodeRecordLength(std::string_view header, const std::string& path, int64_t offset) {
  try {
    CheckCrc(header.substr(0, sizeof(uint64_t)), header.data() + sizeof(uint64_t), "length", path, offset);
  } catch (const DataLossError& error) {
    const std::string_view packed = offset == 0 ? CompressionOf(header) : "";
    if (packed.empty()) throw;
    throw DataLossError(StrCat(error.what(), ". The file begins as one that is packed with ", packed,
                               ": read it with TFRecordDataset, and say so in its `compression`"));
  }
  uint64_t length;
  std::memcpy(&length, header.data(), sizeof(length));
  return length;
}

void CheckRecordPayload(std::string_view payload_and_footer, const std::string& path, int64_t offset) {
  const size_t length = payload_and_footer.size() - kRecordFooterBytes;
  CheckCrc(payload_and_footer.substr(0, length), payload_and_footer.data() + length, "payload", path, offset);
}

RecordWriter::~RecordWriter() {
  try {
    Flush();
  } catch (const Error&) {  // a destructor cannot report it
  }
}

void RecordWriter::Write(std::string_view payload) {
  EncodeRecord(payload, &buffer_);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void RecordWriter::Flush() {
  if (buffer_.empty()) return;
  // The buffer is emptied even if the write fails, because a record that is half written must not be written again
  // behind its first half.
  const std::string bytes = std::move(buffer_);
  buffer_.clear();
  file_.Append(bytes);
}

void RecordWriter::Close() {
  Flush();
  file_.Close();
}

RecordReader::Outcome RecordReader::Read(std::string* payload) {
  char header[kRecordHeaderBytes];
  const size_t count = file_.Read(offset_, header);
  if (count == 0) return Outcome::kEnd;
  if (count < kRecordHeaderBytes) return Outcome::kTruncated;
  const uint64_t length = DecodeRecordLength({header, sizeof(header)}, file_.path(), offset_);
  const int64_t room = file_.Size() - offset_ - static_cast<int64_t>(kRecordHeaderBytes + kRecordFooterBytes);
  if (room < 0 || length > static_cast<uint64_t>(room)) return Outcome::kTruncated;

  payload->resize(length + kRecordFooterBytes);
  if (file_.Read(offset_ + static_cast<int64_t>(kRecordHeaderBytes), *payload) < payload->size())
    return Outcome::kTruncated;
  CheckRecordPayload(*payload, file_.path(), offset_);
  payload->resize(length);
  offset_ += static_cast<int64_t>(kRecordHeaderBytes + length + kRecordFooterBytes);
  return Outcome::kRecord;
}

}  // namespace cohort
