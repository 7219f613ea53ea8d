// Descendants are found by the parents in /proc, because this process becomes the parent of all orphans (AdoptOrphans).
// RunWatched forks. The parent waits for signals and for the end of the child (WatchBody). The child runs the body.
#include "tools/cohort/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "tools/cohort/process.h"

namespace cohort::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the parent of the process, or 0 if the process has gone. The line of /proc is "pid (name) state parent ...".
// A name may contain any characters.
pid_t ParentOf(const char* pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line, '\0')) return 0;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > line.size()) return 0;
  return static_cast<pid_t>(std::strtol(line.c_str() + name_end + 4, nullptr, 10));
}

timespec Until(Clock::time_point deadline) {
  const auto left = std::max<Clock::duration>(deadline - Clock::now(), Clock::duration::zero());
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Waits until the next SIGCHLD, which may be pending, or until the deadline.
void WaitForChild(Clock::time_point deadline) {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  const timespec left = Until(deadline);
  sigtimedwait(&child_signal, nullptr, &left);
}

bool IsIgnored(int signal) {
  struct sigaction current;
  return sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

sigset_t BlockSignals() {
  signal(SIGCHLD, SIG_DFL);  // if SIGCHLD were ignored, children would end without a status
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
    if (s != SIGHUP || !IsIgnored(SIGHUP)) sigaddset(&set, s);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return set;
}

[[noreturn]] void RunBody(const std::function<int(int)>& body, int parent_fd) {
  setpgid(0, 0);             // so only the parent gets the terminal's Ctrl-C, and passes it on once
  signal(SIGTTOU, SIG_IGN);  // allows output to the terminal from another process group
  signal(SIGPIPE, SIG_IGN);
  AdoptOrphans();
  int code = 1;
  try {
    code = body(parent_fd);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cohort: %s\n", e.what());
  }
  std::fflush(nullptr);
  _exit(code);
}

int WatchBody(pid_t child, const sigset_t& signals) {
  while (true) {
    siginfo_t info;
    const int got = sigwaitinfo(&signals, &info);
    if (got > 0 && got != SIGCHLD) kill(child, got);
    int status;
    if (waitpid(child, &status, WNOHANG) != child) continue;
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "cohort: the launcher (pid %d) %s; ending its tasks\n", static_cast<int>(child),
                   DescribeEnd(status).c_str());
      KillDescendants(Clock::now() + std::chrono::seconds(30));
    }
    return ExitCodeOf(status);
  }
}

}  // namespace

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return children;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (ParentOf(entry->d_name) == self) children.push_back(static_cast<pid_t>(std::atoi(entry->d_name)));
  }
  closedir(proc);
  return children;
}

std::vector<pid_t> KillDescendants(Clock::time_point deadline) {
  // Before a killed process can be reaped, its children become children of this process. So each round sees the next
  // generation.
  while (true) {
    pid_t reaped;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0) return {};  // ECHILD: none left
    const std::vector<pid_t> children = Children();
    for (const pid_t child : children) kill(child, SIGKILL);
    if (Clock::now() >= deadline) return children;
    WaitForChild(deadline);
  }
}

int KillGroup(pid_t leader, Clock::time_point deadline) {
  kill(-leader, SIGKILL);
  int status = 0;
  waitpid(leader, &status, 0);
  // While the group has members, no other group gets its number.
  pid_t reaped;
  while ((reaped = waitpid(-leader, nullptr, WNOHANG)) >= 0) {
    if (reaped > 0) continue;
    if (Clock::now() >= deadline) break;
    WaitForChild(deadline);
  }
  return status;
}

int RunWatched(const std::function<int(int parent_fd)>& body) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    throw UnavailableError(StrCat("[launch] expected a pipe; got: ", std::strerror(errno), "; see ulimit -n"));
  }
  AdoptOrphans();
  const sigset_t signals = BlockSignals();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    throw UnavailableError(
        StrCat("[launch] expected to start a process; got: ", std::strerror(errno), "; see ulimit -u"));
  }
  if (child == 0) {
    close(fds[1]);
    RunBody(body, fds[0]);
  }
  setpgid(child, child);
  close(fds[0]);  // fds[1] stays open until this process ends, however that happens
  return WatchBody(child, signals);
}

}  // namespace cohort::tools
