// LineOutput: whole lines on their way to a file descriptor and, where that is a terminal, one line below them that is
// drawn again as it changes, such as a progress bar.
#pragma once

#include <string>
#include <string_view>

#include "tools/cohort/output_sink.h"

namespace cohort::tools {

// Whether escape sequences mean something to what reads `fd`: a terminal, and TERM is not "dumb".
bool IsCapableTerminal(int fd);

// The beginning of `text` that takes at most `columns` columns of a terminal, and nothing that moves the cursor: of
// escape sequences colours alone are kept (and reset where text was cut away), a tab becomes a space, other control
// characters and an incomplete last character (UTF-8) are left out. Each character counts as one column.
std::string CutToColumns(std::string_view text, size_t columns);

class LineOutput {
 public:
  // Does not own `fd` and leaves its flags alone.
  explicit LineOutput(int fd) : sink_(fd), draws_(IsCapableTerminal(fd)) {}

  // Prints whole lines; the last line that was drawn makes room for them.
  void PrintLine(std::string_view prefix, std::string_view line);
  // Writes what can be written without blocking. Once all lines are written, draws `last_line` below them, cut to the
  // terminal's width; empty: none. Nothing is drawn that is there already, and nothing where draws() is false.
  void Write(std::string_view last_line);

  const OutputSink& sink() const { return sink_; }
  bool draws() const { return draws_; }

 private:
  OutputSink sink_;
  bool draws_;
  std::string drawn_;  // the last line as it is drawn now; empty: none is
};

}  // namespace cohort::tools
