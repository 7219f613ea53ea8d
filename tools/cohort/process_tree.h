// Finds and ends all descendants of this process, so that no process outlives its launch.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <vector>

namespace cohort::tools {

// Makes this process the new parent of every descendant that loses its parent, also of daemons. There is no way back.
void AdoptOrphans();

// Returns the processes whose parent is this process, also zombies. It reads /proc.
std::vector<pid_t> Children();

// Sends SIGKILL to all descendants, and reaps them. Returns those that were not dead at the deadline, because they are
// in a system call that cannot be interrupted. Requires: AdoptOrphans was called, this process has one thread, and
// SIGCHLD is blocked in it.
std::vector<pid_t> KillDescendants(std::chrono::steady_clock::time_point deadline);

// Sends SIGKILL to the process group `leader`, and reaps its members. Returns the leader's status, as from waitpid.
// Members that are not dead at the deadline are left. Requires: this process has started the leader and not reaped it,
// and the leader has ended.
int KillGroup(pid_t leader, std::chrono::steady_clock::time_point deadline);

// Runs `body` in a child process, and returns its exit code. The two processes watch each other:
// - SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) are passed on to the child, which has a process group
// of
//   its own.
// - If this process dies (SIGKILL), `parent_fd`, the argument of `body`, becomes readable (end of file). The body then
// has
//   to end its descendants and return.
// - If the child dies, this process kills the descendants, and the result is 128 + signal.
// SIGCHLD, SIGINT, SIGTERM and SIGHUP are blocked in the body, for signalfd.
// Requires: this process has one thread.
int RunWatched(const std::function<int(int parent_fd)>& body);

}  // namespace cohort::tools
