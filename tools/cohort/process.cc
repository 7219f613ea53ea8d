// StartProcess forks. The child prepares itself and calls execve (BecomeProgram). It sends errno through a pipe if that
// fails. The pipe closes when execve succeeds, which is how the parent knows. The functions before find the program,
// and explain why it cannot run.
#include "tools/cohort/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::tools {
namespace {

[[noreturn]] void Refuse(int exit_code, const std::string& program, const std::string& why) {
  throw ProgramError{exit_code, StrCat("cannot run ", program, ": ", why)};
}

// Returns the errno that execve would give for `path`, as far as it can be known before, or 0 for an executable file.
int WhyNotExecutable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

int ShellCodeOf(int error) { return error == ENOENT || error == ENOTDIR ? 127 : 126; }

class Pipe {
 public:
  Pipe() {
    if (pipe2(fds_, O_CLOEXEC) != 0) {
      throw UnavailableError(StrCat("[launch] expected a pipe for a task's output; got: ", std::strerror(errno),
                                    "; raise the limit of open files (ulimit -n)"));
    }
  }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_fd() const { return fds_[0]; }
  int write_fd() const { return fds_[1]; }
  int TakeReadEnd() { return std::exchange(fds_[0], -1); }
  void CloseRead() { Close(&fds_[0]); }
  void CloseWrite() { Close(&fds_[1]); }

 private:
  static void Close(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  int fds_[2];
};

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void ResetSignals() {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction current;
    const bool nohup = signal == SIGHUP && sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
    if (!nohup) sigaction(signal, &plain, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Runs in the child between fork and exec. Returns only if a call fails, with its errno.
int BecomeProgram(pid_t launcher, int out_fd, int err_fd, const char* path, char* const* arguments,
                  char* const* environment) {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  if (getppid() != launcher) _exit(128 + SIGKILL);  // the launcher ended before prctl
  ResetSignals();
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0) return errno;
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // this includes descriptors that this process has inherited
  execve(path, arguments, environment);
  return errno;
}

// Returns the interpreter of a script ("#! interpreter"). If execve fails, it may be missing.
std::string InterpreterOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.rfind("#!", 0) != 0) return "";
  line.erase(0, line.find_first_not_of(" \t", 2));
  return line.substr(0, line.find_first_of(" \t\r"));
}

[[noreturn]] void RefuseExec(const std::string& path, int error) {
  if (error == ENOENT && WhyNotExecutable(path) == 0) {
    const std::string interpreter = InterpreterOf(path);
    Refuse(127, path,
           interpreter.empty() ? "its loader is not there" : "there is no " + interpreter + " (its first line)");
  }
  if (error == ENOEXEC) Refuse(126, path, "it is neither a program of this machine nor a script with a \"#!\" line");
  Refuse(ShellCodeOf(error), path, std::strerror(error));
}

}  // namespace

std::string FindProgram(const std::string& program) {
  if (program.empty()) Refuse(127, "\"\"", "the name is empty");
  if (program.find('/') != std::string::npos) {
    const int error = WhyNotExecutable(program);
    if (error != 0) Refuse(ShellCodeOf(error), program, std::strerror(error));
    return program;
  }
  const char* variable = std::getenv("PATH");
  const std::string folders = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  std::string forbidden;  // found, but not executable
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    const std::string path = (folder.empty() ? "." : folder) + "/" + program;
    const int error = WhyNotExecutable(path);
    if (error == 0) return path;
    if (error == EACCES && forbidden.empty()) forbidden = path;
    begin = end + 1;
  }
  if (!forbidden.empty()) Refuse(126, forbidden, std::strerror(EACCES));
  Refuse(127, program, "there is no such program in PATH; for a file of this folder write ./" + program);
}

Process StartProcess(const std::string& path, const std::vector<std::string>& arguments,
                     const Environment& environment) {
  std::vector<std::string> argument_texts = arguments, environment_texts;
  for (const auto& [name, value] : environment) environment_texts.push_back(name + "=" + value);
  const std::vector<char*> argv = Pointers(argument_texts), envp = Pointers(environment_texts);
  Pipe out, err, failure;
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    throw UnavailableError(StrCat("[launch] expected to start a process; got: ", std::strerror(errno),
                                  "; raise the limit of processes (ulimit -u)"));
  }
  if (pid == 0) {
    const int error = BecomeProgram(launcher, out.write_fd(), err.write_fd(), path.c_str(), argv.data(), envp.data());
    const ssize_t ignored = write(failure.write_fd(), &error, sizeof(error));
    (void)ignored;
    _exit(127);
  }
  setpgid(pid, pid);  // also called here, so that the group exists when this function returns
  out.CloseWrite();
  err.CloseWrite();
  failure.CloseWrite();
  int error = 0;
  ssize_t count;
  do {
    count = read(failure.read_fd(), &error, sizeof(error));  // ends when execve has closed the other end
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof(error))) {
    waitpid(pid, nullptr, 0);
    RefuseExec(path, error);
  }
  fcntl(out.read_fd(), F_SETFL, O_NONBLOCK);
  fcntl(err.read_fd(), F_SETFL, O_NONBLOCK);
  const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) {
    const int pidfd_error = errno;
    kill(-pid, SIGKILL);
    throw UnavailableError(StrCat("[launch] expected a descriptor for a process; got: ", std::strerror(pidfd_error),
                                  "; raise the limit of open files (ulimit -n), or use Linux 5.3 or later"));
  }
  return {pid, pid_fd, out.TakeReadEnd(), err.TakeReadEnd()};
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string DescribeEnd(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return StrCat("exited with code ", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return StrCat("was killed by signal ", signal, " (", strsignal(signal), WCOREDUMP(wait_status) ? ", core dumped" : "",
                ")");
}

}  // namespace cohort::tools
