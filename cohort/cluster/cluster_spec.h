// ClusterSpec: the tasks of a cluster, by job name and index, and the address of each. It has the semantics and the
// text form of TensorFlow's tf.train.ClusterSpec.
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

// The tasks of a cluster and their addresses. A value type: copies are independent. Const members are thread-safe.
class COHORT_EXPORT ClusterSpec {
 public:
  // The tasks of one job: index -> "host:port". Indices may be missing.
  using Tasks = std::map<int, std::string>;

  // A cluster without jobs.
  ClusterSpec() = default;
  // The position of an address in its list is the task's index. The constructor is implicit, so that a map can be
  // passed as a ClusterSpec.
  ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs);  // NOLINT: implicit
  // The same from a literal: {{"ps", {"h:1"}}, {"worker", {"h:2", "h:3"}}}. If a job occurs twice, uses its first list.
  ClusterSpec(std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs);
  // Makes a cluster in which indices may be missing. This is not a constructor, because a literal could then mean two
  // constructors.
  static ClusterSpec FromSparse(std::map<std::string, Tasks> jobs);
  // The constructors and FromSparse throw InvalidArgumentError, with job and index, if a job name is not a letter
  // followed by letters, digits or '_', if an index is not in [0, kMaxTaskIndex], or if ParseAddress rejects an
  // address. They accept a job without tasks.
  static constexpr int kMaxTaskIndex = 999'999;

  bool empty() const { return jobs_.empty(); }
  // Returns the job names, sorted.
  std::vector<std::string> jobs() const;
  bool has_job(std::string_view job) const { return jobs_.find(job) != jobs_.end(); }

  // The next four functions throw NotFoundError for an unknown job or index. The message names the jobs or indices that
  // exist.
  int num_tasks(std::string_view job) const;
  // Returns the indices in ascending order.
  std::vector<int> task_indices(std::string_view job) const;
  const std::string& task_address(std::string_view job, int index) const;
  // Returns one element for each index from 0 to the highest; nullopt for an index that is missing.
  std::vector<std::optional<std::string>> job_tasks(std::string_view job) const;

  bool has_task(std::string_view job, int index) const;
  // Returns the number of tasks of all jobs.
  int total_tasks() const;
  // Returns job and index of every task, sorted by job name and then by index.
  std::vector<std::pair<std::string, int>> tasks() const;
  const std::map<std::string, Tasks, std::less<>>& as_map() const { return jobs_; }

  // Returns, for example, "ClusterSpec({'ps': ['h:1'], 'worker': {1: 'h:2'}})": a list if no index is missing, else a
  // dict.
  std::string ToString() const;

  bool operator==(const ClusterSpec& other) const { return jobs_ == other.jobs_; }
  bool operator!=(const ClusterSpec& other) const { return !(*this == other); }

 private:
  const Tasks& Job(std::string_view job) const;

  std::map<std::string, Tasks, std::less<>> jobs_;
};

COHORT_EXPORT std::ostream& operator<<(std::ostream& out, const ClusterSpec& cluster);

// The parts of "host:port". The host is a name, an IPv4 address, or an IPv6 address without brackets.
struct COHORT_EXPORT HostPort {
  std::string host;
  int port = 0;  // 0 to 65535; 0 means a port that the system chooses
};

// Returns the parts of `address`. Throws InvalidArgumentError, with the reason, if it is empty, has no port or no host,
// the port is not a number from 0 to 65535, a character cannot be in a host name, an IPv6 address has no brackets, or
// there is a "grpc://" in front.
COHORT_EXPORT HostPort ParseAddress(std::string_view address);

// Returns, for example, "/job:worker/task:1".
COHORT_EXPORT std::string TaskName(std::string_view job, int index);

}  // namespace cohort
