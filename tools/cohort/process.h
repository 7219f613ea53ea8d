// Starts one process of a launch, and describes how it ended.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/cohort/launch_layout.h"

namespace cohort::tools {

// Thrown if a program cannot be run. `exit_code` is that of a shell: 127 if the program was not found, 126 if it is not
// executable.
struct ProgramError {
  int exit_code;
  std::string message;  // names the path
};

// Returns the path for execve: `program` itself if it has a '/', else the first executable file of that name in PATH.
// Throws ProgramError if there is none.
std::string FindProgram(const std::string& program);

struct Process {
  pid_t pid = -1;
  // The descriptors are close-on-exec, and the caller owns them:
  int pid_fd = -1;  // readable once the process has ended
  int out_fd = -1;  // read ends, non-blocking
  int err_fd = -1;
};

// Runs `path` with `arguments` (the first is the program's name), and returns when it is running. The process
// - leads a process group of its own, and gets SIGKILL when the calling thread ends in any way;
// - has stdin from /dev/null, stdout and stderr in pipes, and no other descriptor of this process;
// - starts with an empty signal mask and default actions (but if SIGHUP was ignored, as under nohup, it stays so).
// Throws ProgramError if execve fails, and UnavailableError if there are no processes or descriptors left.
Process StartProcess(const std::string& path, const std::vector<std::string>& arguments,
                     const Environment& environment);

// Returns the exit code, or 128 + signal, of a status from waitpid.
int ExitCodeOf(int wait_status);
// Returns "exited with code 3" or "was killed by signal 9 (Killed)".
std::string DescribeEnd(int wait_status);

}  // namespace cohort::tools
