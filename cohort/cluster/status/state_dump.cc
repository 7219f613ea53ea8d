// The signal handler may only write to a pipe. A thread reads the pipe and prints.
#include "cohort/cluster/status/state_dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/status/task_state.h"
#include "cohort/core/process/stacks.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

std::atomic<int> pipe_to_dumper{-1};  // never closed

void HandleDumpSignal(int) {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(pipe_to_dumper.load(), "d", 1);
  errno = error;
}

std::string DescribeProcess() {
  std::string text = StrCat("==== what process ", getpid(), " does ====\n");
  for (const auto& node : ServerDirectory::Global().All()) text += DescribeWithoutStacks(CollectTaskState(*node));
  text += StrCat("threads:\n", DescribeStacks(ThreadStacks()));
  return text + StrCat("==== end of what process ", getpid(), " does ====\n");
}

void WriteAll(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = write(STDERR_FILENO, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) at += static_cast<size_t>(count);
  }
}

void DumpForEver(int from) {
  SetThreadName("cohort-dump");
  char byte = 0;
  for (;;) {
    const ssize_t count = read(from, &byte, 1);
    if (count == 1) WriteAll(DescribeProcess());
    if (count == 0 || (count < 0 && errno != EINTR)) return;
  }
}

void Install() {
  struct sigaction now {};
  if (sigaction(SIGUSR1, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  fcntl(ends[1], F_SETFL, O_NONBLOCK);  // many signals at once do not hold up the handler
  pipe_to_dumper = ends[1];
  std::thread([from = ends[0]] { DumpForEver(from); }).detach();
  struct sigaction action {};
  action.sa_handler = HandleDumpSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

}  // namespace

void DumpStateOnSignal() {
  static std::once_flag once;
  std::call_once(once, Install);
}

}  // namespace cohort
