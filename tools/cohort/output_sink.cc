#include "tools/cohort/output_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace cohort::tools {
namespace {

// A pipe that poll calls writable takes this much without blocking (pipe(7)).
constexpr size_t kChunk = 4096;

bool Writable(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  return poll(&entry, 1, 0) == 1;
}

}  // namespace

void OutputSink::Push(std::string_view text) {
  if (error_ != 0) return;
  if (written_ > kFullAt) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  queue_.append(text);
}

void OutputSink::WriteSome() {
  while (error_ == 0 && pending() > 0 && Writable(fd_)) {
    const ssize_t count = write(fd_, queue_.data() + written_, std::min(pending(), kChunk));
    if (count >= 0) {
      written_ += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  if (error_ != 0 || pending() == 0) {
    queue_.clear();
    written_ = 0;
  }
}

}  // namespace cohort::tools
