// InputFile: the bytes of a file from the first to the last, unpacked where the file is gzip or zlib.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cohort/core/file.h"
#include "cohort/data/readers/compression.h"

namespace cohort::data {

// Not thread-safe.
class InputFile {
 public:
  // Whether it is gzip is told by its first two bytes, not by its name. Throws as core/file.h says.
  explicit InputFile(const std::string& path);
  InputFile(const std::string& path, Compression compression);
  ~InputFile();

  // Fills `out`; fewer bytes only at the end. Returns their count. Throws DataLossError with file and offset
  // for packed data that is corrupt or cut off.
  size_t Read(std::span<char> out);
  // The next Read begins at `offset`. Only where the file is not compressed.
  void Seek(int64_t offset) { offset_ = offset; }
  const std::string& path() const { return file_.path(); }
  bool compressed() const { return inflater_ != nullptr; }
  // No more bytes than this can come out of the file.
  int64_t MaxSize() const;

 private:
  struct Inflater;
  size_t ReadInflated(std::span<char> out);

  RandomAccessFile file_;
  int64_t offset_ = 0;  // of the next byte to read from the file
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace cohort::data
