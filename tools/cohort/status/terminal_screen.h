// TerminalScreen: shows one text after another. On a terminal each replaces the one before.
#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <string>

namespace cohort::tools {

// Uses stdin and stdout. If stdout is a terminal, texts are drawn on the terminal's alternate screen, cut to its size.
// If stdin is a terminal, too, its keys are read without echo. The destructor restores both, and leaves the last text
// on the normal screen. If stdout is no terminal, texts follow one another, with an empty line between them. While the
// object exists, SIGINT and SIGTERM make WaitUntil return false. Make one object, on the main thread, before other
// threads start, or those threads may get the signals.
class TerminalScreen {
 public:
  TerminalScreen();
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  void Show(const std::string& text);
  // Waits until `time`. Returns false as soon as the user leaves: by q, by the end of stdin on a terminal, or by a
  // signal.
  bool WaitUntil(std::chrono::steady_clock::time_point time);

 private:
  bool draws_ = false;       // stdout is a terminal
  bool reads_keys_ = false;  // stdin is one, too
  bool shown_ = false;
  std::string last_;
  int signal_fd_ = -1;
  sigset_t signals_before_{};
  termios keys_before_{};
};

}  // namespace cohort::tools
