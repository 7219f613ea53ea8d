// ClusterSpec: which tasks a cluster has, by job name and index, and where each one listens.
// Semantics and text form as TensorFlow's tf.train.ClusterSpec.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// A value; copies are independent, const members are thread-safe.
class COHORT_EXPORT ClusterSpec {
 public:
  // Task index -> "host:port" of one job. Indices need not be dense.
  using Tasks = std::map<int, std::string>;

  // No jobs.
  ClusterSpec() = default;
  // Dense jobs: the position in the list is the task index.
  ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs);  // NOLINT: a map is a spec
  // The same from a literal: {{"ps", {"h:1"}}, {"worker", {"h:2", "h:3"}}}. A job given twice: the first
  // stays.
  ClusterSpec(std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs);
  // Sparse jobs. A name of its own, so that a literal is never ambiguous.
  static ClusterSpec FromSparse(std::map<std::string, Tasks> jobs);
  // All throw InvalidArgumentError, naming job and index, for a job name that is not a letter followed by
  // letters, digits or '_', an index outside [0, kMaxTaskIndex], or an address that ParseAddress refuses. A
  // job may have no tasks.
  static constexpr int kMaxTaskIndex = 999'999;

  bool empty() const { return jobs_.empty(); }
  // Job names, sorted.
  std::vector<std::string> jobs() const;
  bool has_job(std::string_view job) const { return jobs_.find(job) != jobs_.end(); }

  // The four throw NotFoundError, naming the jobs or indices there are, for an unknown job or index.
  int num_tasks(std::string_view job) const;
  // Ascending.
  std::vector<int> task_indices(std::string_view job) const;
  const std::string& task_address(std::string_view job, int index) const;
  // One entry an index from 0 to the highest; nullopt where a sparse job has no task.
  std::vector<std::optional<std::string>> job_tasks(std::string_view job) const;

  bool has_task(std::string_view job, int index) const;
  // Number of tasks of all jobs.
  int total_tasks() const;
  // Job and index of every task, by job name and then by index.
  std::vector<std::pair<std::string, int>> tasks() const;
  const std::map<std::string, Tasks, std::less<>>& as_map() const { return jobs_; }

  // "ClusterSpec({'ps': ['h:1'], 'worker': {1: 'h:2'}})": a list where indices are dense, else a dict.
  std::string ToString() const;

  bool operator==(const ClusterSpec& other) const { return jobs_ == other.jobs_; }
  bool operator!=(const ClusterSpec& other) const { return !(*this == other); }

 private:
  const Tasks& Job(std::string_view job) const;

  std::map<std::string, Tasks, std::less<>> jobs_;
};

COHORT_EXPORT std::ostream& operator<<(std::ostream& out, const ClusterSpec& cluster);

// "host:port" in its parts: host is a name, an IPv4 address, or an IPv6 address (without its brackets).
struct COHORT_EXPORT HostPort {
  std::string host;
  int port = 0;  // 0 to 65535; 0 stands for a port that the system chooses
};

// Throws InvalidArgumentError that says what is wrong with `address`: empty, no port, port not a number from
// 0 to 65535, empty host, a character that no host name has, an IPv6 address without brackets, a "grpc://" in
// front.
COHORT_EXPORT HostPort ParseAddress(std::string_view address);

// "/job:worker/task:1".
COHORT_EXPORT std::string TaskName(std::string_view job, int index);

}  // namespace cohort
