// OutputMux: copies the output of many tasks to the launcher's stdout and stderr, as whole lines that begin with the
// name of the task. If wanted, it also writes the output of each task to a file. Used by one thread. Nothing blocks.
//
// If a task overwrites a line after '\r', only the last text of the line is printed (LineSplitter). On a terminal such
// a line is also shown before it has a newline: below all other lines, with the task's name. It is drawn again when it
// changes. If there are several such lines, the one that changed last is shown.
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cohort/line_output.h"
#include "tools/cohort/line_splitter.h"

namespace cohort::tools {

enum class ColorMode { kAuto, kAlways, kNever };

// Returns whether the output to `fd` is coloured. With kAuto it is coloured if `fd` is a terminal, TERM is not "dumb"
// and NO_COLOR is not set.
bool UseColor(ColorMode mode, int fd);

// Returns "[worker/0] ". If `color` is true, each `which` has a colour of its own.
std::string LinePrefix(std::string_view task, size_t which, bool color);

class OutputMux {
 public:
  // If both descriptors are of the same terminal or pipe, they are treated as one, so that no line of stderr breaks a
  // line of stdout.
  OutputMux(int out_fd, int err_fd, ColorMode color);
  ~OutputMux();
  OutputMux(const OutputMux&) = delete;
  OutputMux& operator=(const OutputMux&) = delete;

  // Returns the task's number for AddStream: 0, 1, ... Unless `log_path` is empty, the task's output also goes to that
  // file, without prefix. An existing file is replaced. Throws UnavailableError if the file cannot be written.
  size_t AddTask(const std::string& name, const std::string& log_path);
  // Reads `fd` as the task's stdout or stderr until its end, and then closes it. Requires: `fd` is the read end of a
  // pipe and is non-blocking.
  void AddStream(size_t task, bool is_stderr, int fd);

  // Prints a line of the launcher itself to stderr: "cohort launch: text".
  void Say(std::string_view text);

  // Appends the descriptors to poll. Then pass the same entries, with their results, to HandleEvents.
  void AddPollEntries(std::vector<pollfd>* entries) const;
  void HandleEvents(const std::vector<pollfd>& entries);
  // Reads the text that a task has written so far. Call it after a task's end, so that its output comes before the
  // launcher's lines about it.
  void DrainTask(size_t task);

  // Reads the text that all streams have now, and closes them. Also prints lines that have no newline yet.
  void CloseStreams();
  // Returns whether a line of stdout is shown before it has a newline, so that tasks may draw progress bars.
  bool shows_bars() const { return out_->draws(); }
  // Returns whether everything is written, or can no longer be written.
  bool flushed() const;

 private:
  struct Task {
    std::string name;
    std::string prefix[2];  // of stdout and stderr
    int log_fd = -1;
    std::string log_path;
  };
  struct Stream {
    size_t task;
    bool is_stderr;
    int fd;
    LineSplitter lines;
    uint64_t changed = 0;  // the value of changes_ when its line was last overwritten
  };

  LineOutput& OutputOf(bool is_stderr) const { return is_stderr && err_ != nullptr ? *err_ : *out_; }
  // Returns false at the stream's end.
  bool ReadOnce(Stream* stream);
  void Emit(const Stream& stream, std::string_view line, bool complete);
  void WriteLog(Task* task, std::string_view line, bool complete);
  void Close(Stream* stream);
  // Returns the line that `output` shows below all others now, with its prefix, or "" if there is none.
  std::string LastLineOf(const LineOutput& output) const;
  void WriteOutputs();

  std::unique_ptr<LineOutput> out_;
  std::unique_ptr<LineOutput> err_;  // null if it is the same terminal or pipe as out_
  std::vector<int> own_fds_;         // terminals, opened anew
  bool color_[2];
  std::vector<Task> tasks_;
  std::list<Stream> streams_;
  uint64_t changes_ = 0;  // number of times that a line was overwritten
  std::vector<char> buffer_;
};

}  // namespace cohort::tools
