#include "tests/cluster/launched_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;

int OpenPid(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool Readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace

LaunchedProgram::LaunchedProgram(const std::vector<std::string>& command, const std::function<void()>& in_child) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  std::vector<std::string> texts = command;
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    signal(SIGHUP, SIG_DFL);  // also if the tests run under nohup
    if (in_child) in_child();
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  readers_[0] = std::thread([this, fd = out[0]] { Read(fd, &out_); });
  readers_[1] = std::thread([this, fd = err[0]] { Read(fd, &err_); });
}

LaunchedProgram::~LaunchedProgram() {
  if (!ended_) {
    Signal(SIGKILL);
    Wait();
  }
  for (std::thread& reader : readers_) reader.join();
}

void LaunchedProgram::Signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

int LaunchedProgram::Wait() {
  if (ended_) return code_;
  const int fd = OpenPid(pid_);
  const bool in_time = Readable(fd, kPatience * 1000);
  close(fd);
  if (!in_time) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  const auto deadline = Clock::now() + std::chrono::seconds(kPatience);
  MutexLock lock(mu_);
  while (open_ > 0) {
    if (!more_.WaitUntil(mu_, deadline)) return -1;
  }
  return code_;
}

std::string LaunchedProgram::out() {
  MutexLock lock(mu_);
  return out_;
}

std::string LaunchedProgram::err() {
  MutexLock lock(mu_);
  return err_;
}

bool LaunchedProgram::WaitForText(const std::string& text, int times) {
  const auto deadline = Clock::now() + std::chrono::seconds(kPatience);
  MutexLock lock(mu_);
  while (Count(out_, text) + Count(err_, text) < times) {
    if (open_ == 0 || !more_.WaitUntil(mu_, deadline)) return false;
  }
  return true;
}

void LaunchedProgram::Read(int fd, std::string* text) {
  char buffer[4096];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof(buffer))) > 0) {
    MutexLock lock(mu_);
    text->append(buffer, static_cast<size_t>(count));
    more_.NotifyAll();
  }
  close(fd);
  MutexLock lock(mu_);
  --open_;
  more_.NotifyAll();
}

WatchedProcess::WatchedProcess(pid_t pid) : fd_(OpenPid(pid)) {}
WatchedProcess::~WatchedProcess() {
  if (fd_ >= 0) close(fd_);
}
WatchedProcess::WatchedProcess(WatchedProcess&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

bool WatchedProcess::WaitForEnd() const { return fd_ < 0 || Readable(fd_, kPatience * 1000); }
bool WatchedProcess::running() const { return fd_ >= 0 && !Readable(fd_, 0); }

std::vector<pid_t> NumbersAfter(const std::string& text, const std::string& label) {
  std::vector<pid_t> numbers;
  for (size_t at = text.find(label); at != std::string::npos; at = text.find(label, at + 1)) {
    numbers.push_back(static_cast<pid_t>(std::atoi(text.c_str() + at + label.size())));
  }
  return numbers;
}

}  // namespace cohort::testing
