// BufferedInput: an InputFile read in large pieces and handed out in small ones.
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
  // Of the next byte to be handed out, in the unpacked file.
  int64_t offset() const { return buffer_offset_ + static_cast<int64_t>(next_); }
  // Forward only. Throws DataLossError where the file ends before.
  void SkipTo(int64_t offset);
  // The next byte as 0 to 255; -1 at the end.
  int Peek() { return next_ < filled_ || Fill() ? static_cast<unsigned char>(buffer_[next_]) : -1; }
  int Get() {
    const int byte = Peek();
    if (byte >= 0) ++next_;
    return byte;
  }
  // Fills `out`; fewer bytes only at the end. Returns their count.
  size_t Read(std::span<char> out);
  // Replaces *line by the bytes up to "\n", without it. False at the end of the file.
  bool ReadLine(std::string* line);

 private:
  bool Fill();

  InputFile file_;
  std::vector<char> buffer_;
  int64_t buffer_offset_ = 0;  // of the buffer's first byte
  size_t next_ = 0, filled_ = 0;
};

}  // namespace cohort::data
