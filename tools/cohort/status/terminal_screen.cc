#include "tools/cohort/status/terminal_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "cohort/core/error.h"
#include "tools/cohort/line_output.h"

namespace cohort::tools {
namespace {

// See console_codes(4).
constexpr std::string_view kEnterScreen = "\033[?1049h\033[?25l";
constexpr std::string_view kLeaveScreen = "\033[?25h\033[?1049l";
constexpr std::string_view kGoHome = "\033[H";
constexpr std::string_view kEraseLine = "\033[K";
constexpr std::string_view kEraseBelow = "\033[J";

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;  // nobody reads it
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
}

// Returns the first lines of `text` that fit the terminal, each cut to its width and erased behind.
std::string Fitted(const std::string& text) {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  const size_t columns = known ? size.ws_col : 80;
  const size_t rows = known ? size.ws_row : 24;
  std::string fitted;
  size_t row = 0;
  for (size_t begin = 0; begin < text.size() && row < rows; ++row) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    fitted += row == 0 ? "" : "\n";
    // A character in the last column would be erased with the rest of the line.
    fitted += CutToColumns(std::string_view(text).substr(begin, end - begin), columns - 1);
    fitted += kEraseLine;
    begin = end + 1;
  }
  return fitted;
}

}  // namespace

TerminalScreen::TerminalScreen() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, &signals_before_);
  signal_fd_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signal_fd_ < 0) throw UnavailableError("[top] expected a descriptor for signals; got none; see ulimit -n");
  draws_ = IsCapableTerminal(STDOUT_FILENO);
  reads_keys_ = draws_ && tcgetattr(STDIN_FILENO, &keys_before_) == 0;
  if (reads_keys_) {
    termios keys = keys_before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  if (draws_) WriteAll(kEnterScreen);
}

TerminalScreen::~TerminalScreen() {
  if (draws_) {
    WriteAll(kLeaveScreen);
    WriteAll(last_);
  }
  if (reads_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &keys_before_);
  close(signal_fd_);
  pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

void TerminalScreen::Show(const std::string& text) {
  last_ = text;
  if (draws_) {
    WriteAll(std::string(kGoHome) + Fitted(text) + std::string(kEraseBelow));
  } else {
    WriteAll((shown_ ? "\n" : "") + text);
  }
  shown_ = true;
}

bool TerminalScreen::WaitUntil(std::chrono::steady_clock::time_point time) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - std::chrono::steady_clock::now()).count();
    pollfd entries[] = {{signal_fd_, POLLIN, 0}, {reads_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
    const int count = poll(entries, std::size(entries), static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000)));
    if (count == 0 && left <= 0) return true;
    if (entries[0].revents != 0) {
      signalfd_siginfo info;
      while (read(signal_fd_, &info, sizeof(info)) > 0) {
      }
      return false;
    }
    if (entries[1].revents != 0) {
      char key = 0;
      const ssize_t bytes = read(STDIN_FILENO, &key, 1);
      if (bytes == 0 || (bytes < 0 && errno != EINTR) || key == 'q' || key == 'Q') return false;
    }
  }
}

}  // namespace cohort::tools
