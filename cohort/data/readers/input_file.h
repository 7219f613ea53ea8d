// InputFile: reads the bytes of a file from the first to the last, and unpacks them if the file is gzip or zlib.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cohort/core/file.h"
#include "cohort/data/readers/compression.h"

namespace cohort::data {

// One open file; the destructor closes it.
// Not thread-safe.
class InputFile {
 public:
  // Finds out by the first two bytes, not by the name, whether the file is gzip. Throws as core/file.h says.
  explicit InputFile(const std::string& path);
  InputFile(const std::string& path, Compression compression);
  ~InputFile();

  // Fills `out` and returns the number of bytes. It is smaller than the size of `out` only at the end of the file.
  // Throws DataLossError with file and offset if packed data are corrupt or cut off.
  size_t Read(std::span<char> out);
  // Makes the next Read begin at `offset`. Requires: the file is not compressed.
  void Seek(int64_t offset) { offset_ = offset; }
  const std::string& path() const { return file_.path(); }
  bool compressed() const { return inflater_ != nullptr; }
  // Returns an upper bound of the number of bytes that Read can return in all.
  int64_t MaxSize() const;

 private:
  struct Inflater;
  size_t ReadInflated(std::span<char> out);

  RandomAccessFile file_;
  int64_t offset_ = 0;  // of the next byte to read from the file
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace cohort::data
