// TFRecord framing: uint64 length, masked crc32c of the length, payload, masked crc32c of the payload
// (little-endian), records simply one after another. Uncompressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/file.h"

namespace cohort {

inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;

// Appends one framed record to `out`.
COHORT_EXPORT void EncodeRecord(std::string_view payload, std::string* out);

// For readers: the payload's length by the `header` of kRecordHeaderBytes, and the check of a payload that is followed
// by its footer. Both throw DataLossError with `path` and the record's `offset` for a wrong crc.
COHORT_EXPORT uint64_t DecodeRecordLength(std::string_view header, const std::string& path, int64_t offset);
COHORT_EXPORT void CheckRecordPayload(std::string_view payload_and_footer, const std::string& path, int64_t offset);

// Buffers up to 64 KiB. Not thread-safe. Throws as file.h says.
class COHORT_EXPORT RecordWriter {
 public:
  // Creates or empties the file.
  explicit RecordWriter(const std::string& path) : file_(path) {}
  // Flushes; an error then is lost, so call Close().
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  const std::string& path() const { return file_.path(); }
  void Write(std::string_view payload);
  // After it a reader sees every record written.
  void Flush();
  void Close();

 private:
  WritableFile file_;
  std::string buffer_;
};

// Not thread-safe.
class COHORT_EXPORT RecordReader {
 public:
  enum class Outcome {
    kRecord,
    kEnd,        // the file ends after the last record
    kTruncated,  // the file ends inside a record: still being written, or cut off
  };

  explicit RecordReader(const std::string& path) : file_(path) {}

  // The next record into `payload`. After kEnd and kTruncated it stays where it is, so that the reader of a
  // growing file may call it again. Throws DataLossError with file and offset for a wrong crc.
  Outcome Read(std::string* payload);
  // Where the next record begins, in bytes.
  int64_t offset() const { return offset_; }
  const std::string& path() const { return file_.path(); }

 private:
  RandomAccessFile file_;
  int64_t offset_ = 0;
};

}  // namespace cohort
