// ClusterReport: the answers of the tasks of a cluster to the question for their status. JudgeCluster: says in words
// whether the cluster is well. Pure functions of plain data.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/status/task_status.h"

namespace cohort {

// The answer of one task, or the reason why there is none.
struct TaskReport {
  enum class Answer {
    kStatus,   // `status` has it
    kSilent,   // no answer came in time
    kGone,     // no process listens at its address, or the connection has closed
    kRefused,  // the process at its address does not take this client or is another task
  };
  std::string job;
  int index = 0;
  std::string address;
  Answer answer = Answer::kSilent;
  TaskStatus status;
  std::string why_not;  // the error's text if there is no status

  bool answered() const { return answer == Answer::kStatus; }
  // Returns "worker 1", the name for people.
  std::string Name() const;
};

struct ClusterReport {
  std::vector<TaskReport> tasks;            // sorted by job and index
  std::chrono::milliseconds time_limit{0};  // that each task had to answer
};

// Something that the reader should look at.
struct Finding {
  size_t task = 0;  // index into ClusterReport::tasks
  bool unwell = false;
  std::string text;  // "worker 1 waits for 12.0 s in AllReduce 'gradients/3' for worker 0"
};

struct Verdict {
  bool well = true;
  std::string text;               // one line
  std::vector<Finding> findings;  // what is not well comes first
};

// When a step counts as stuck.
struct VerdictLimits {
  std::chrono::milliseconds waiting{5000};     // a step that waits for another task without progress
  std::chrono::milliseconds computing{60000};  // a step whose kernel does not end
};

Verdict JudgeCluster(const ClusterReport& report, const VerdictLimits& limits = {});

// Returns why a task that answers is not well by itself, or "". It is what /healthz says of the task. A step that waits
// for another task's value is no reason.
std::string JudgeTask(const TaskStatus& status, const VerdictLimits& limits);

// Returns "worker 1" for "/job:worker/replica:0/task:1". Returns other names as they are.
std::string ShortTaskName(const std::string& full_name);
// Returns "12 300" for 12300.
std::string GroupedNumber(int64_t number);
// Returns a rate with about three digits: "0.25", "8.1", "8 100".
std::string RateText(double per_second);
// Returns "0.3 s", "12.0 s", "3 min 5 s" or "2 h 10 min".
std::string DurationText(std::chrono::milliseconds time);

}  // namespace cohort
