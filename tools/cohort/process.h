// Starting one process of a launch, and saying how it ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/cohort/launch_layout.h"

namespace cohort::tools {

// A program that cannot be run. `exit_code` is a shell's: 127 not found, 126 found but not executable.
struct ProgramError {
  int exit_code;
  std::string message;  // names the path
};

// The path that execve gets: `program` itself where it has a '/', else the first executable file in PATH.
// Throws ProgramError.
std::string FindProgram(const std::string& program);

struct Process {
  pid_t pid = -1;
  // Close-on-exec and owned by the caller:
  int pid_fd = -1;  // readable once the process has ended
  int out_fd = -1;  // read ends, non-blocking
  int err_fd = -1;
};

// Runs `path` with `arguments` (the first is the program's name) and returns once it is running. The process
// - leads a process group of its own, and gets SIGKILL when the calling thread ends, however that happens;
// - has stdin from /dev/null, stdout and stderr in pipes, and no other descriptor of this process;
// - starts with an empty signal mask and default actions (SIGHUP stays ignored where it was, as under nohup).
// Throws ProgramError when execve fails, UnavailableError when there are no processes or descriptors left.
Process StartProcess(const std::string& path, const std::vector<std::string>& arguments,
                     const Environment& environment);

// Of a status as waitpid gives it: the exit code, or 128 + signal.
int ExitCodeOf(int wait_status);
// "exited with code 3" or "was killed by signal 9 (Killed)".
std::string DescribeEnd(int wait_status);

}  // namespace cohort::tools
