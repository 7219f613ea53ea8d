// BufferedInput: reads an InputFile in pieces of 256 KiB and hands out bytes and lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cohort/data/readers/input_file.h"

namespace cohort::data {

// Not thread-safe.
class BufferedInput {
 public:
  BufferedInput(const std::string& path, Compression compression);

  const std::string& path() const { return file_.path(); }
  // Returns the offset, in the unpacked file, of the next byte that will be handed out.
  int64_t offset() const { return buffer_offset_ + static_cast<int64_t>(next_); }
  // Goes forward to `offset`. Requires: `offset` is not before offset(). Throws DataLossError if a packed file ends
  // before it.
  void SkipTo(int64_t offset);
  // Returns the next byte, from 0 to 255, without taking it. Returns -1 at the end.
  int Peek() { return next_ < filled_ || Fill() ? static_cast<unsigned char>(buffer_[next_]) : -1; }
  // As Peek, and takes the byte.
  int Get() {
    const int byte = Peek();
    if (byte >= 0) ++next_;
    return byte;
  }
  // Fills `out` and returns the number of bytes. It is smaller than the size of `out` only at the end of the file.
  size_t Read(std::span<char> out);
  // Replaces *line by the bytes up to the next "\n", which is taken but not part of the line. Returns false at the end
  // of the file.
  bool ReadLine(std::string* line);

 private:
  bool Fill();

  InputFile file_;
  std::vector<char> buffer_;
  int64_t buffer_offset_ = 0;  // of the buffer's first byte, in the unpacked file
  size_t next_ = 0, filled_ = 0;
};

}  // namespace cohort::data
