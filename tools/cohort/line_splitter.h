// LineSplitter: splits a stream of bytes into lines, as a terminal shows them in the end. If a program overwrites a
// line after '\r', as progress bars do, only the last text of the line is kept.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace cohort::tools {

// Not thread-safe.
class LineSplitter {
 public:
  // A line that is longer than this, counted from its last '\r', is emitted in pieces.
  static constexpr size_t kMaxLine = 1 << 20;

  // Calls emit(line, complete) for each line that `bytes` ends, without its newline and without the text before its
  // last
  // '\r'. A '\r' at the end of the line, as in "\r\n", does not count, and is kept. Every other byte is kept, also NUL.
  // `complete` is false for a piece of a line that is too long.
  template <typename Emit>
  void Append(std::string_view bytes, Emit&& emit) {
    while (!bytes.empty()) {
      const std::string_view line = bytes.substr(0, bytes.find('\n'));
      AddToLine(line, emit);
      if (line.size() == bytes.size()) return;  // no newline yet
      End(emit);
      bytes.remove_prefix(line.size() + 1);
    }
  }

  // Call at the end of the stream. Emits the text after the last newline as a line, if there is any.
  template <typename Emit>
  void Finish(Emit&& emit) {
    if (!begun_.empty()) End(emit);
  }

  // Returns whether the line that has no newline yet has a '\r'. Its writer then expects the user to see it already.
  bool rewritten() const { return rewritten_; }
  // Returns the text of that line that a terminal shows now, without '\r'. Valid until the next call.
  std::string_view begun() const { return std::string_view(begun_).substr(0, begun_.find_last_not_of('\r') + 1); }

 private:
  // Requires: `text` has no newline.
  template <typename Emit>
  void AddToLine(std::string_view text, Emit& emit) {
    while (!text.empty()) {
      const bool returns = text.front() == '\r';
      const size_t end = returns ? text.find_first_not_of('\r') : text.find('\r');
      rewritten_ = rewritten_ || returns;
      if (!returns && !begun_.empty() && begun_.back() == '\r') begun_.clear();
      Add(text.substr(0, end), emit);
      text.remove_prefix(std::min(end, text.size()));
    }
  }

  template <typename Emit>
  void Add(std::string_view text, Emit& emit) {
    while (!text.empty()) {
      if (begun_.size() == kMaxLine) {
        emit(std::string_view(begun_), false);
        begun_.clear();
      }
      const std::string_view piece = text.substr(0, kMaxLine - begun_.size());
      begun_.append(piece);
      text.remove_prefix(piece.size());
    }
  }

  template <typename Emit>
  void End(Emit& emit) {
    rewritten_ = false;
    emit(std::string_view(begun_), true);
    begun_.clear();
  }

  std::string begun_;  // at most kMaxLine bytes: the text after the last '\r' that is followed by text
  bool rewritten_ = false;
};

}  // namespace cohort::tools
