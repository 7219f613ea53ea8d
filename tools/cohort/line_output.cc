#include "tools/cohort/line_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace cohort::tools {
namespace {

constexpr char kEscape = '\033';
constexpr std::string_view kResetColors = "\033[0m";
constexpr std::string_view kEraseToEnd = "\033[K";
constexpr size_t kUsualColumns = 80;  // for a terminal that does not say how wide it is

size_t ColumnsOf(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

// Returns the number of bytes of the escape sequence at the beginning of `text` (ECMA-48, 5.4). If it is incomplete,
// returns the size of `text`.
size_t EscapeSize(std::string_view text) {
  if (text.size() < 2 || text[1] != '[') return std::min<size_t>(text.size(), 2);
  const auto final_byte = std::find_if(text.begin() + 2, text.end(), [](char c) { return c >= 0x40 && c <= 0x7e; });
  return static_cast<size_t>(final_byte - text.begin()) + (final_byte == text.end() ? 0 : 1);
}

bool IsColor(std::string_view escape) { return escape.size() > 2 && escape[1] == '[' && escape.back() == 'm'; }

// Returns the number of bytes of the character at the beginning of `text`, or 0 if it is not complete UTF-8.
size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size > text.size()) return 0;
  const bool continues =
      std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(size, 1)),
                  [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; });
  return continues ? size : 0;
}

// Returns whether the character is a control character other than tab.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first == 0xC2) return static_cast<unsigned char>(character[1]) < 0xA0;  // U+0080 to U+009F
  return first == 0x7f || (first < 0x20 && first != '\t');
}

}  // namespace

bool IsCapableTerminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) != 0 && (term == nullptr || std::string_view(term) != "dumb");
}

std::string CutToColumns(std::string_view text, size_t columns) {
  std::string kept;
  bool colored = false;
  for (size_t size = 0; !text.empty(); text.remove_prefix(size)) {
    if (text[0] == kEscape) {
      size = EscapeSize(text);
      if (!IsColor(text.substr(0, size))) continue;
      kept += text.substr(0, size);
      colored = true;
      continue;
    }
    const size_t character = CharacterSize(text);
    size = std::max<size_t>(character, 1);
    if (character == 0 || IsControl(text.substr(0, size))) continue;
    if (columns == 0) return colored ? kept.append(kResetColors) : kept;
    --columns;
    kept += text[0] == '\t' ? " " : text.substr(0, size);
  }
  return kept;
}

void LineOutput::PrintLine(std::string_view prefix, std::string_view line) {
  if (!drawn_.empty()) {
    sink_.Push("\r");
    sink_.Push(kEraseToEnd);
    drawn_.clear();
  }
  sink_.Push(prefix);
  sink_.Push(line);
  sink_.Push("\n");
}

void LineOutput::Write(std::string_view last_line) {
  sink_.WriteSome();
  // A terminal that is stopped or slow gets only the newest drawing when it goes on.
  if (!draws_ || sink_.pending() > 0) return;
  // The last column stays free, because some terminals begin a new line after a character there.
  std::string drawing = CutToColumns(last_line, ColumnsOf(sink_.fd()) - 1);
  if (drawing == drawn_) return;
  sink_.Push("\r");
  sink_.Push(drawing);
  sink_.Push(kEraseToEnd);
  sink_.WriteSome();
  drawn_ = std::move(drawing);
}

}  // namespace cohort::tools
