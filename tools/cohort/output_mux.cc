// poll tells which streams have bytes. ReadOnce reads them into the LineSplitter of the stream, Emit adds each whole
// line to an output and to the log file, and WriteOutputs writes as much as the outputs take. If too much is pending,
// streams are not read, so that tasks wait.
#include "tools/cohort/output_mux.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::tools {
namespace {

constexpr size_t kReadSize = 64 << 10;  // a pipe holds as much

bool SamePlace(int a, int b) {
  struct stat x, y;
  return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// Opens the terminal of `fd` once more, as a non-blocking descriptor. Returns -1 if `fd` is not a terminal. A terminal
// may take part of a write and then block while it is stopped (Ctrl-S). The shell shares `fd`, so its flags must not
// change.
int NonBlockingTerminal(int fd) {
  if (isatty(fd) == 0) return -1;
  return open(StrCat("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// Returns 0 if all is written, else errno.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace

bool UseColor(ColorMode mode, int fd) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  return IsCapableTerminal(fd);
}

std::string LinePrefix(std::string_view task, size_t which, bool color) {
  static constexpr int kColors[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};
  if (!color) return StrCat("[", task, "] ");
  return StrCat("\033[", kColors[which % std::size(kColors)], "m[", task, "]\033[0m ");
}

OutputMux::OutputMux(int out_fd, int err_fd, ColorMode color) : buffer_(kReadSize) {
  color_[0] = UseColor(color, out_fd);
  color_[1] = UseColor(color, err_fd);
  const auto output = [this](int fd) {
    const int terminal = NonBlockingTerminal(fd);
    if (terminal >= 0) own_fds_.push_back(terminal);
    return std::make_unique<LineOutput>(terminal >= 0 ? terminal : fd);
  };
  out_ = output(out_fd);
  if (!SamePlace(out_fd, err_fd)) err_ = output(err_fd);
}

OutputMux::~OutputMux() {
  for (const Stream& stream : streams_) close(stream.fd);
  for (const Task& task : tasks_) {
    if (task.log_fd >= 0) close(task.log_fd);
  }
  for (const int fd : own_fds_) close(fd);
}

size_t OutputMux::AddTask(const std::string& name, const std::string& log_path) {
  Task task;
  task.name = name;
  for (const bool is_stderr : {false, true}) {
    task.prefix[is_stderr] = LinePrefix(name, tasks_.size(), color_[is_stderr]);
  }
  if (!log_path.empty()) {
    task.log_path = log_path;
    task.log_fd = open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (task.log_fd < 0) {
      throw UnavailableError(StrCat("[launch] expected to write ", name, "'s output to ", log_path,
                                    "; got: ", std::strerror(errno), "; choose another --output_dir"));
    }
  }
  tasks_.push_back(std::move(task));
  return tasks_.size() - 1;
}

void OutputMux::AddStream(size_t task, bool is_stderr, int fd) {
  streams_.push_back({task, is_stderr, fd, LineSplitter()});
}

void OutputMux::Say(std::string_view text) {
  OutputOf(true).PrintLine("cohort launch: ", text);
  WriteOutputs();
}

void OutputMux::AddPollEntries(std::vector<pollfd>* entries) const {
  for (const Stream& stream : streams_) {
    if (!OutputOf(stream.is_stderr).sink().full()) entries->push_back({stream.fd, POLLIN, 0});
  }
  for (const LineOutput* output : {out_.get(), err_.get()}) {
    if (output != nullptr && output->sink().pending() > 0) entries->push_back({output->sink().fd(), POLLOUT, 0});
  }
}

void OutputMux::HandleEvents(const std::vector<pollfd>& entries) {
  auto next = entries.begin();  // entries are in the order of the streams
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const auto entry = std::find_if(next, entries.end(), [&](const pollfd& e) { return e.fd == stream->fd; });
    const bool ready = entry != entries.end() && entry->revents != 0;
    if (entry != entries.end()) next = entry + 1;
    if (ready && !ReadOnce(&*stream)) {
      Close(&*stream);
      stream = streams_.erase(stream);
    } else {
      ++stream;
    }
  }
  WriteOutputs();
}

bool OutputMux::ReadOnce(Stream* stream) {
  const ssize_t count = read(stream->fd, buffer_.data(), buffer_.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  stream->lines.Append(std::string_view(buffer_.data(), static_cast<size_t>(count)),
                       [&](std::string_view line, bool complete) { Emit(*stream, line, complete); });
  if (stream->lines.rewritten()) stream->changed = ++changes_;
  return count > 0;
}

void OutputMux::Emit(const Stream& stream, std::string_view line, bool complete) {
  Task& task = tasks_[stream.task];
  OutputOf(stream.is_stderr).PrintLine(task.prefix[stream.is_stderr], line);
  if (task.log_fd >= 0) WriteLog(&task, line, complete);
}

void OutputMux::WriteLog(Task* task, std::string_view line, bool complete) {
  int error = WriteAll(task->log_fd, line);
  if (error == 0 && complete) error = WriteAll(task->log_fd, "\n");
  if (error == 0) return;
  close(task->log_fd);
  task->log_fd = -1;
  Say(StrCat("writing ", task->log_path, " failed: ", std::strerror(error), "; the rest of the output is not in it"));
}

void OutputMux::Close(Stream* stream) {
  stream->lines.Finish([&](std::string_view line, bool complete) { Emit(*stream, line, complete); });
  close(stream->fd);
}

void OutputMux::DrainTask(size_t task) {
  for (Stream& stream : streams_) {
    if (stream.task != task) continue;
    // Reads at most twice the content of a pipe, because processes that the task has left may go on writing.
    pollfd entry{stream.fd, POLLIN, 0};
    for (int i = 0; i < 2 && poll(&entry, 1, 0) == 1 && ReadOnce(&stream); ++i) {
    }
  }
  WriteOutputs();
}

void OutputMux::CloseStreams() {
  for (Stream& stream : streams_) {
    for (int i = 0; i < 2 && ReadOnce(&stream); ++i) {
    }
    Close(&stream);
  }
  streams_.clear();
  WriteOutputs();
}

std::string OutputMux::LastLineOf(const LineOutput& output) const {
  if (!output.draws()) return "";
  const Stream* latest = nullptr;
  for (const Stream& stream : streams_) {
    if (&OutputOf(stream.is_stderr) != &output || !stream.lines.rewritten() || stream.lines.begun().empty()) continue;
    if (latest == nullptr || stream.changed > latest->changed) latest = &stream;
  }
  return latest == nullptr ? "" : StrCat(tasks_[latest->task].prefix[latest->is_stderr], latest->lines.begun());
}

void OutputMux::WriteOutputs() {
  for (LineOutput* output : {out_.get(), err_.get()}) {
    if (output != nullptr) output->Write(LastLineOf(*output));
  }
}

bool OutputMux::flushed() const {
  return out_->sink().pending() == 0 && (err_ == nullptr || err_->sink().pending() == 0);
}

}  // namespace cohort::tools
