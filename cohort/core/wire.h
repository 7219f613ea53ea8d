// WireWriter and WireReader: numbers and strings as bytes, one value after another. Headers of messages, descriptions
// of datasets and saved positions in datasets have this form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"

namespace cohort {

// Appends values to a string of bytes. Not thread-safe. A varint has 7 bits of the number in each byte, the lowest
// first. Fixed64 has 8 bytes, the lowest first. A string is its length as a varint, and then its bytes.
class WireWriter {
 public:
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void Fixed64(uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void String(std::string_view text) {
    Varint(text.size());
    bytes_.append(text);
  }
  // Returns what has been written. Call no other method than Clear() afterwards.
  std::string Take() { return std::move(bytes_); }
  // Returns what has been written. The view is valid until the next call of a method that changes the writer.
  std::string_view view() const { return bytes_; }
  // Removes all bytes. Keeps the memory for reuse, but not more than 64 KiB of it.
  void Clear() {
    bytes_.clear();
    if (bytes_.capacity() > 64 * 1024) bytes_.shrink_to_fit();
  }

 private:
  std::string bytes_;
};

// Reads the values that a WireWriter wrote, in the same order. Throws DataLossError if the bytes end too early or a
// varint has more than 10 bytes. The bytes must live longer than the reader. Not thread-safe.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Varint();
  // Throws DataLossError also if the value is greater than `limit`.
  uint64_t Varint(uint64_t limit);
  uint64_t Fixed64();
  std::string String() { return std::string(View()); }
  // Reads a string and returns a view of it. The view points into the reader's bytes and is valid as long as they
  // exist.
  std::string_view View();
  // Returns a view of all bytes that are left, and moves to the end.
  std::string_view Rest() { return bytes_.substr(std::exchange(at_, bytes_.size())); }
  bool AtEnd() const { return at_ == bytes_.size(); }
  // Throws DataLossError if bytes are left.
  void ExpectEnd() const;

 private:
  [[noreturn]] void Fail(const char* what) const;

  std::string_view bytes_;
  size_t at_ = 0;
};

// Write and read a status: its code as a varint, and then its message as a string. GetStatus throws DataLossError also
// if the code is not one of Code.
void PutStatus(WireWriter& out, const Status& status);
Status GetStatus(WireReader& in);

}  // namespace cohort
