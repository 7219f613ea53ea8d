// Keeping hold of everything that was started: no process outlives the launch that it belongs to.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

namespace cohort::tools {

// Makes this process the new parent of every descendant that loses its own (daemons included). Lasts until it
// ends.
void AdoptOrphans();

// Processes whose parent is this one, zombies included; from /proc.
std::vector<pid_t> Children();

// SIGKILLs and reaps all descendants (AdoptOrphans must have been called, SIGCHLD be blocked in the only
// thread). Returns those that were not dead at the deadline: in a system call that cannot be interrupted.
std::vector<pid_t> KillDescendants(std::chrono::steady_clock::time_point deadline);

// SIGKILLs process group `leader`, which this process has started and not reaped yet, and reaps all of it.
// Returns the leader's status, as of waitpid; it must have ended. Members that are not dead at the deadline
// are left.
int KillGroup(pid_t leader, std::chrono::steady_clock::time_point deadline);

// Runs `body` in a child process and returns its exit code, so that two processes watch each other:
// - SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) are passed on to the child, which has a
// process group
//   of its own;
// - if this process dies (SIGKILL), `parent_fd`, the argument of `body`, becomes readable (end of file): the
// body has to
//   end its descendants and return;
// - if the child dies, its descendants are killed here, and the result is 128 + signal.
// Call before there are threads. SIGCHLD, SIGINT, SIGTERM and SIGHUP are blocked in the body, for signalfd.
int RunWatched(const std::function<int(int parent_fd)>& body);

}  // namespace cohort::tools
