// DescribeLateTask: asks a task that others wait for what it does.
#pragma once

#include <string>

namespace cohort {

class ClusterNode;

// Asks the task what it does, and returns the answer as text: its operations, and the stacks of the threads that run
// them or, if it runs none, of all threads that are not idle. If the task only waits for another task, asks that one,
// too, and so on. Each question goes over a new connection. Waits at most about ten seconds. If a task does not answer,
// the text says so. Does not throw. Must not be called on a network thread.
std::string DescribeLateTask(ClusterNode& node, const std::string& task);

// Asks the task whether a thread of its process hangs (HungThread). Returns its answer as DescribeLateTask does.
// Returns
// "" if no thread hangs, if the task does not answer within five seconds, or if a launcher ends the task because of the
// thread, so that a new process will take its place. Does not throw. Must not be called on a network thread.
std::string DescribeHang(ClusterNode& node, const std::string& task);

}  // namespace cohort
