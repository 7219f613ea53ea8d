// OutputSink: text on its way to a file descriptor that may be slow (a terminal, a pipe to a pager).
#pragma once

#include <string>
#include <string_view>

namespace cohort::tools {

class OutputSink {
 public:
  // Does not own `fd` and leaves its flags alone, since other processes may share them.
  explicit OutputSink(int fd) : fd_(fd) {}
  OutputSink(const OutputSink&) = delete;
  OutputSink& operator=(const OutputSink&) = delete;

  // Keeps `text` until it can be written. Thrown away when the descriptor has failed.
  void Push(std::string_view text);
  // Writes what can be written without blocking (as far as the descriptor's poll tells the truth).
  void WriteSome();

  int fd() const { return fd_; }
  size_t pending() const { return queue_.size() - written_; }  // bytes
  // Too much is pending: what fills the sink should wait.
  bool full() const { return pending() > kFullAt; }
  // errno of the write that failed, 0 before: nothing is written any more.
  int error() const { return error_; }

 private:
  static constexpr size_t kFullAt = 1 << 20;

  int fd_;
  std::string queue_;
  size_t written_ = 0;  // bytes of queue_
  int error_ = 0;
};

}  // namespace cohort::tools
