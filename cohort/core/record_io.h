// Reads and writes TFRecord files without compression. A file is a sequence of records. A record is, in little-endian
// order: the length of the payload (uint64), the masked CRC-32C of the length, the payload, and the masked CRC-32C of
// the payload.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/file.h"

namespace cohort {

inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;

// Appends the record with this payload to `out`.
COHORT_EXPORT void EncodeRecord(std::string_view payload, std::string* out);

// Returns the length of the payload. `header` is the first kRecordHeaderBytes of the record, which begins at `offset`
// of the file `path`. Throws DataLossError, with path and offset, if the checksum is wrong.
COHORT_EXPORT uint64_t DecodeRecordLength(std::string_view header, const std::string& path, int64_t offset);
// Checks the checksum of a payload. `payload_and_footer` is the payload with the kRecordFooterBytes that follow it. The
// record (not its payload) begins at `offset` of the file `path`. Throws DataLossError, with path and offset, if the
// checksum is wrong.
COHORT_EXPORT void CheckRecordPayload(std::string_view payload_and_footer, const std::string& path, int64_t offset);

// Writes records to a file, through a buffer of 64 KiB. Not thread-safe. Throws the errors that file.h lists. If a
// write fails, the records in the buffer are lost.
class COHORT_EXPORT RecordWriter {
 public:
  // Creates the file, or empties it.
  explicit RecordWriter(const std::string& path) : file_(path) {}
  // Flushes and closes the file, but ignores errors. Call Close() first to see them.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  const std::string& path() const { return file_.path(); }
  void Write(std::string_view payload);
  // Writes the buffer to the file. After that, readers see all records that were written so far.
  void Flush();
  // Flushes and closes the file.
  void Close();

 private:
  WritableFile file_;
  std::string buffer_;
};

// Reads the records of a file in order. The file may still be growing. Not thread-safe. Throws the errors that file.h
// lists.
class COHORT_EXPORT RecordReader {
 public:
  enum class Outcome {
    kRecord,
    kEnd,        // the file ends after the last record
    kTruncated,  // the file ends inside a record: it is still being written, or it was cut off
  };

  explicit RecordReader(const std::string& path) : file_(path) {}

  // Reads the next record into `payload`. After kEnd and kTruncated the position is unchanged and `payload` has no
  // meaning; the caller may call again when the file has grown. Throws DataLossError, with path and offset, if a
  // checksum is wrong.
  Outcome Read(std::string* payload);
  // Returns the byte at which the next record begins.
  int64_t offset() const { return offset_; }
  const std::string& path() const { return file_.path(); }

 private:
  RandomAccessFile file_;
  int64_t offset_ = 0;
};

}  // namespace cohort
