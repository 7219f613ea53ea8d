// OutputMux: what many tasks print, as whole lines that say whose they are, on the launcher's stdout and
// stderr, and in a file a task where wanted. Nothing here blocks; one thread.
//
// Of a line that is written anew after '\r' only the last writing is printed (LineSplitter). On a terminal such a line
// is also shown while it has no newline yet: below all others, with its task's name, drawn again as it changes; of
// several the one that changed last.
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

// Whether kAuto colours what goes to `fd`: a terminal, TERM not "dumb", NO_COLOR not set.
bool UseColor(ColorMode mode, int fd);

// "[worker/0] ", in a colour of its own for each `which` where `color`.
std::string LinePrefix(std::string_view task, size_t which, bool color);

class OutputMux {
 public:
  // Two descriptors of one terminal or pipe are treated as one, so that no line of stderr breaks one of
  // stdout.
  OutputMux(int out_fd, int err_fd, ColorMode color);
  ~OutputMux();
  OutputMux(const OutputMux&) = delete;
  OutputMux& operator=(const OutputMux&) = delete;

  // The task's number for AddStream: 0, 1, ... Its output also goes, without prefix, to the file `log_path`
  // unless that is empty; the file is begun anew. Throws UnavailableError when it cannot be written.
  size_t AddTask(const std::string& name, const std::string& log_path);
  // Reads `fd` (a pipe's end that is non-blocking; taken over) as the task's stdout or stderr until its end.
  void AddStream(size_t task, bool is_stderr, int fd);

  // A line of the launcher itself, to stderr: "cohort launch: text".
  void Say(std::string_view text);

  // Appends what to poll for. HandleEvents then takes the same entries with their results.
  void AddPollEntries(std::vector<pollfd>* entries) const;
  void HandleEvents(const std::vector<pollfd>& entries);
  // Reads what a task has written so far, as after its end, so that it stands before what is said about it.
  void DrainTask(size_t task);

  // Reads what is there from all streams and closes them, printing lines that have no newline yet.
  void CloseStreams();
  // Whether a line of stdout is shown while its task is writing it anew after '\r': it pays to draw progress bars.
  bool shows_bars() const { return out_->draws(); }
  // Everything is written, or can no longer be.
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
    uint64_t changed = 0;  // when its line was last written anew: the greatest is the latest
  };

  LineOutput& OutputOf(bool is_stderr) const { return is_stderr && err_ != nullptr ? *err_ : *out_; }
  // False at the stream's end.
  bool ReadOnce(Stream* stream);
  void Emit(const Stream& stream, std::string_view line, bool complete);
  void WriteLog(Task* task, std::string_view line, bool complete);
  void Close(Stream* stream);
  // The line that `output` shows below all others now, with its prefix; empty: none.
  std::string LastLineOf(const LineOutput& output) const;
  void WriteOutputs();

  std::unique_ptr<LineOutput> out_;
  std::unique_ptr<LineOutput> err_;  // null where it is the same place as out_
  std::vector<int> own_fds_;         // terminals, opened anew
  bool color_[2];
  std::vector<Task> tasks_;
  std::list<Stream> streams_;
  uint64_t changes_ = 0;  // of lines that are written anew
  std::vector<char> buffer_;
};

}  // namespace cohort::tools
