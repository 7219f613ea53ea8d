// What the fuzz targets share: the parts of an input, files for readers that take a path, and the rule for exceptions.
//
// A target is a function LLVMFuzzerTestOneInput(data, size), which libFuzzer calls with many inputs. A reader may take
// an input or refuse it by a cohort::Error. Everything else is a finding: another exception, a report of a sanitizer,
// too much memory, or too much time.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::fuzz {

// Calls `read`. Returns false if it throws an Error. Lets every other exception through, which ends the process.
template <typename Read>
bool Accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Ends the process, as a finding, if `is_so` is false. For what must hold after a reader has accepted an input.
inline void Require(bool is_so) {
  if (!is_so) std::abort();
}

inline std::string_view View(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Takes numbers and bytes from the front of an input. At the end it gives zeros and empty texts.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(View(data, size)) {}

  bool empty() const { return left_.empty(); }
  uint8_t Byte() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  // Returns a number below `limit`, which is at least 1.
  uint64_t Below(uint64_t limit) { return (limit <= 256 ? Byte() : Byte() | uint64_t{Byte()} << 8) % limit; }
  bool Bool() { return (Byte() & 1) != 0; }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word |= uint64_t{Byte()} << (8 * i);
    return word;
  }
  // Returns the next bytes. Their number stands before them, in two bytes; if the input is too short, takes what is
  // left.
  std::string_view Text() {
    const size_t low = Byte();
    const size_t size = std::min(low | size_t{Byte()} << 8, left_.size());
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(size);
    return text;
  }
  std::string_view Rest() { return std::exchange(left_, {}); }

 private:
  std::string_view left_;
};

// Writes what Input::Text takes.
inline void AppendText(std::string_view text, std::string* out) {
  out->push_back(static_cast<char>(text.size()));
  out->push_back(static_cast<char>(text.size() >> 8));
  out->append(text);
}

// Returns the path of a file or folder `name` in a folder of this process, in memory if the system has such a place.
// The folder is removed when the process ends by itself.
inline std::string ScratchPath(const std::string& name) {
  struct Folder {
    Folder() {
      const char* parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
      path = std::string(parent) + "/cohort-fuzz-" + std::to_string(getpid());
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
  static const Folder folder;
  return folder.path + "/" + name;
}

// Writes a file into that folder and returns its path.
inline std::string ScratchFile(const std::string& name, std::string_view bytes) {
  std::string path = ScratchPath(name);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace cohort::fuzz
