// OutputSink: keeps text until a slow file descriptor (a terminal, a pipe to a pager) has taken it.
#pragma once

#include <string>
#include <string_view>

namespace cohort::tools {

// Not thread-safe. Nothing blocks.
class OutputSink {
 public:
  // Does not own `fd`. Does not change its flags, because other processes may share them.
  explicit OutputSink(int fd) : fd_(fd) {}
  OutputSink(const OutputSink&) = delete;
  OutputSink& operator=(const OutputSink&) = delete;

  // Keeps `text` until it can be written. Drops it if the descriptor has failed.
  void Push(std::string_view text);
  // Writes as much as it can without blocking, if poll's answer for the descriptor is right.
  void WriteSome();

  int fd() const { return fd_; }
  size_t pending() const { return queue_.size() - written_; }  // bytes
  // Returns whether so much is pending that the caller should wait before it adds more.
  bool full() const { return pending() > kFullAt; }
  // Returns the errno of the write that failed, or 0. After a failure nothing is written any more.
  int error() const { return error_; }

 private:
  static constexpr size_t kFullAt = 1 << 20;

  int fd_;
  std::string queue_;
  size_t written_ = 0;  // bytes of queue_
  int error_ = 0;
};

}  // namespace cohort::tools
