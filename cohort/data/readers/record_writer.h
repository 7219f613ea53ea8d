// TFRecordWriter: writes TFRecord files, which TFRecordDataset and TensorFlow read. cohort/core/record_io.h has the
// format; the writer there (RecordWriter) is for files without compression.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/data/readers/compression.h"

namespace cohort::data {

struct COHORT_EXPORT TFRecordOptions {
  Compression compression = Compression::kNone;  // of the whole file
  int compression_level = -1;                    // 0 (none) to 9 (smallest); -1: zlib's default, 6
};

// Writes records to a file, through buffers. The program owns it. Not thread-safe. Throws the errors that core/file.h
// lists. If a write fails, the file is damaged.
class COHORT_EXPORT TFRecordWriter {
 public:
  // Creates the file, or empties it. Throws InvalidArgumentError for a compression_level out of [-1, 9], and for one
  // other than -1 without compression.
  explicit TFRecordWriter(const std::string& path, const TFRecordOptions& options = {});
  // Closes the file, but ignores errors. Call Close() first to see them.
  ~TFRecordWriter();
  TFRecordWriter(const TFRecordWriter&) = delete;
  TFRecordWriter& operator=(const TFRecordWriter&) = delete;

  // Appends a record, such as train::Example::SerializeToString().
  void Write(std::string_view record);
  // Writes the buffers to the file. After that, readers see all records that were written so far. With compression,
  // each call makes the file a little larger.
  void Flush();
  // Flushes and closes the file. Later calls of Write throw FailedPreconditionError.
  void Close();

 private:
  class Output;
  std::unique_ptr<Output> output_;  // null after Close
  const std::string path_;
  std::string buffer_;
};

}  // namespace cohort::data
