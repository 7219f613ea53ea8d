// WireWriter, WireReader: varints, fixed words and strings one after another, as message headers, positions of
// datasets and their descriptions have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cohort {

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
  std::string Take() { return std::move(bytes_); }
  // What is written so far; valid until the next call.
  std::string_view view() const { return bytes_; }
  // Begins anew in the same memory (but keeps no more than 64 KiB of it).
  void Clear() {
    bytes_.clear();
    if (bytes_.capacity() > 64 * 1024) bytes_.shrink_to_fit();
  }

 private:
  std::string bytes_;
};

// Throws DataLossError for bytes that end too early or a varint that is too long. The text has to outlive the reader.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Varint();
  // Throws DataLossError for a value above `limit`.
  uint64_t Varint(uint64_t limit);
  uint64_t Fixed64();
  std::string String() { return std::string(View()); }
  // A string without a copy.
  std::string_view View();
  // All that is left, without a copy.
  std::string_view Rest() { return bytes_.substr(std::exchange(at_, bytes_.size())); }
  bool AtEnd() const { return at_ == bytes_.size(); }
  void ExpectEnd() const;

 private:
  [[noreturn]] void Fail(const char* what) const;

  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace cohort
