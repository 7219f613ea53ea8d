// InputFile: reads the bytes of a file from the first to the last, and unpacks them if the file is gzip or zlib.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cohort/core/file.h"
#include "cohort/data/readers/compression.h"

namespace cohort::data {

// One open file. The caller owns it; the destructor closes the file. Not thread-safe.
class InputFile {
 public:
  // Opens the file. Unpacks it if its first two bytes (not its name) say that it is gzip. Throws the errors of
  // core/file.h.
  explicit InputFile(const std::string& path);
  // Opens the file, and unpacks it as `compression` says. Throws the errors of core/file.h.
  InputFile(const std::string& path, Compression compression);
  ~InputFile();

  // Fills `out` and returns the number of bytes. The number is smaller than the size of `out` only at the end of the
  // file. Throws DataLossError with file and offset if compressed data are corrupt or cut off, and the errors of
  // core/file.h.
  size_t Read(std::span<char> out);
  // Makes the next Read begin at `offset`. Requires: the file is not compressed.
  void Seek(int64_t offset) { offset_ = offset; }
  const std::string& path() const { return file_.path(); }
  bool compressed() const { return inflater_ != nullptr; }
  // Returns an upper bound of the number of bytes that Read can return in all.
  int64_t MaxSize() const;
  // Returns the most bytes that one value of the file may have in memory, such as a record or a line. This is the size
  // of the file. For a compressed file it is 64 times the size, or 256 MiB if that is more, because few bytes of a
  // damaged file can unpack to very many.
  int64_t MaxValueBytes() const;

 private:
  struct Inflater;
  size_t ReadInflated(std::span<char> out);

  RandomAccessFile file_;
  int64_t offset_ = 0;  // of the next byte to read from the file
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace cohort::data
