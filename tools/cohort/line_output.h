// LineOutput: writes whole lines to a file descriptor. On a terminal it also draws one last line below them, such as a
// progress bar, and draws it again when it changes.
#pragma once

#include <string>
#include <string_view>

#include "tools/cohort/output_sink.h"

namespace cohort::tools {

// Returns whether `fd` understands escape sequences: it is a terminal, and TERM is not "dumb".
bool IsCapableTerminal(int fd);

// Returns the beginning of `text` that takes at most `columns` columns of a terminal, without anything that moves the
// cursor. Only escape sequences of colours are kept, and the colour is reset if text was cut away. A tab becomes a
// space. Other control characters and an incomplete last character (UTF-8) are removed. Each character counts as one
// column.
std::string CutToColumns(std::string_view text, size_t columns);

// Not thread-safe. Nothing blocks.
class LineOutput {
 public:
  // Does not own `fd` and does not change its flags.
  explicit LineOutput(int fd) : sink_(fd), draws_(IsCapableTerminal(fd)) {}

  // Adds the line `prefix` + `line`. The last line that was drawn is removed first.
  void PrintLine(std::string_view prefix, std::string_view line);
  // Writes as much as it can without blocking. When all lines are written, draws `last_line` below them, cut to the
  // terminal's width. Draws nothing if `last_line` is empty or is drawn already, or if draws() is false.
  void Write(std::string_view last_line);

  const OutputSink& sink() const { return sink_; }
  bool draws() const { return draws_; }

 private:
  OutputSink sink_;
  bool draws_;
  std::string drawn_;  // the last line as it is drawn now; empty if none is
};

}  // namespace cohort::tools
