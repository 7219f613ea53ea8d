// BufferedInput: reads an InputFile in pieces of 256 KiB and hands out bytes and lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cohort/data/readers/input_file.h"

namespace cohort::data {

// Hands out the bytes of one file, in order. A FileReader owns it; the destructor closes the file. Functions that read
// throw the errors of InputFile::Read. Not thread-safe.
class BufferedInput {
 public:
  // Opens the file. Throws the errors of core/file.h.
  BufferedInput(const std::string& path, Compression compression);

  const std::string& path() const { return file_.path(); }
  // Returns the offset, in the unpacked file, of the next byte that will be handed out.
  int64_t offset() const { return buffer_offset_ + static_cast<int64_t>(next_); }
  // Goes forward to `offset`. Requires: `offset` is not before offset(). Throws DataLossError if a compressed file ends
  // before `offset`. In a file that is not compressed, `offset` may be behind the end.
  void SkipTo(int64_t offset);
  // Returns the next byte, from 0 to 255, without taking it. Returns -1 at the end.
  int Peek() { return next_ < filled_ || Fill() ? static_cast<unsigned char>(buffer_[next_]) : -1; }
  // Returns the same as Peek, and takes the byte.
  int Get() {
    const int byte = Peek();
    if (byte >= 0) ++next_;
    return byte;
  }
  // Fills `out` and returns the number of bytes. The number is smaller than the size of `out` only at the end of the
  // file.
  size_t Read(std::span<char> out);
  // Replaces *line by the bytes up to the next "\n" or the end of the file. Takes the "\n" too, but does not put it
  // into the line. Returns false if there are no more bytes. Throws DataLossError, as CheckValueBytes does, if the line
  // is too long.
  bool ReadLine(std::string* line);
  // Goes to the next line. Does not keep the bytes of this one, which may be very long.
  void SkipLine();
  // Throws DataLossError if a value that begins at `start` may not have so many bytes (InputFile::MaxValueBytes).
  // `what` is "a record", "a line", ...
  void CheckValueBytes(uint64_t bytes, const char* what, int64_t start) const;

 private:
  bool Fill();

  InputFile file_;
  const int64_t max_value_bytes_;
  std::vector<char> buffer_;
  int64_t buffer_offset_ = 0;  // of the buffer's first byte, in the unpacked file
  size_t next_ = 0, filled_ = 0;
};

}  // namespace cohort::data
