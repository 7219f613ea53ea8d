// LineSplitter: lines out of a stream of bytes.
#pragma once

#include <string>
#include <string_view>

namespace cohort::tools {

class LineSplitter {
 public:
  // A line longer than this is given in pieces.
  static constexpr size_t kMaxLine = 1 << 20;

  // Calls emit(line, complete) for each line that `bytes` ends, without its newline; any other byte, NUL
  // included, is kept. `complete` is false for a piece of a line that is too long.
  template <typename Emit>
  void Append(std::string_view bytes, Emit&& emit) {
    while (!bytes.empty()) {
      const std::string_view line = bytes.substr(0, bytes.find('\n'));
      const std::string_view piece = line.substr(0, kMaxLine - begun_.size());
      if (piece.size() < line.size()) {
        begun_.append(piece);
        emit(std::string_view(begun_), false);
        begun_.clear();
        bytes.remove_prefix(piece.size());
        continue;
      }
      if (line.size() == bytes.size()) {  // no newline yet
        begun_.append(line);
        return;
      }
      if (begun_.empty()) {
        emit(line, true);
      } else {
        begun_.append(line);
        emit(std::string_view(begun_), true);
        begun_.clear();
      }
      bytes.remove_prefix(line.size() + 1);
    }
  }

  // At the end of the stream: gives what was begun and not ended by a newline, as a line.
  template <typename Emit>
  void Finish(Emit&& emit) {
    if (begun_.empty()) return;
    emit(std::string_view(begun_), true);
    begun_.clear();
  }

 private:
  std::string begun_;  // at most kMaxLine bytes
};

}  // namespace cohort::tools
