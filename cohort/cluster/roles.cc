#include "cohort/cluster/roles.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

bool IsRole(std::string_view type) {
  return type == "chief" || type == "worker" || type == "ps" || type == "evaluator";
}

int Count(const ClusterSpec& cluster, std::string_view job) {
  return cluster.has_job(job) ? cluster.num_tasks(job) : 0;
}

void CheckCluster(const ClusterSpec& cluster) {
  for (const std::string& job : cluster.jobs()) {
    if (!IsRole(job)) {
      throw InvalidArgumentError(
          StrCat("[cluster] expected the jobs chief, worker, ps and evaluator; got '", job, "' in ", cluster));
    }
  }
  for (const char* job : {"chief", "evaluator"}) {
    if (Count(cluster, job) > 1) {
      throw InvalidArgumentError(
          StrCat("[cluster] expected at most one ", job, "; got ", Count(cluster, job), " in ", cluster));
    }
  }
}

void CheckTrains(std::string_view type) {
  if (type == "chief" || type == "worker" || type == "evaluator") return;
  throw InvalidArgumentError(StrCat("[cluster] expected a task of chief, worker or evaluator; got '", type, "'"));
}

}  // namespace

void CheckRole(const ClusterSpec& cluster, std::string_view type, int index) {
  CheckCluster(cluster);
  if (!IsRole(type)) {
    throw InvalidArgumentError(
        StrCat("[cluster] expected chief, worker, ps or evaluator as a task's type; got '", type, "'"));
  }
  if (!cluster.has_job(type)) {
    if (type == "evaluator") return;
    throw InvalidArgumentError(
        StrCat("[cluster] expected a task's type to be in the cluster; got '", type, "' with ", cluster));
  }
  if (!cluster.has_task(type, index)) {
    throw InvalidArgumentError(StrCat("[cluster] expected a task of job '", type, "' (",
                                      StrJoin(cluster.task_indices(type), ", "), "); got index ", index));
  }
}

bool IsChief(const ClusterSpec& cluster, std::string_view type, int index) {
  if (cluster.empty()) return true;
  CheckRole(cluster, type, index);
  if (type == "chief" || type == "evaluator") return true;
  return !cluster.has_job("chief") && type == "worker" && index == 0;
}

int WorkerCount(const ClusterSpec& cluster, std::string_view type) {
  if (cluster.empty()) return 1;
  CheckCluster(cluster);
  CheckTrains(type);
  if (type == "evaluator") return cluster.has_job(type) ? cluster.num_tasks(type) : 1;
  return Count(cluster, "chief") + Count(cluster, "worker");
}

int IdInCluster(const ClusterSpec& cluster, std::string_view type, int index) {
  if (cluster.empty()) return 0;
  CheckRole(cluster, type, index);
  CheckTrains(type);
  // The position in the list and not the index, because a job may lack some indices.
  const std::vector<int> indices = cluster.task_indices(type);
  const auto before = static_cast<int>(std::find(indices.begin(), indices.end(), index) - indices.begin());
  return type == "worker" ? before + Count(cluster, "chief") : before;
}

std::string CollectiveLeader(const ClusterSpec& cluster, std::string_view type, int index) {
  if (cluster.empty()) return "";
  CheckRole(cluster, type, index);
  if (type == "evaluator") return "";
  if (cluster.has_job("chief")) return "/job:chief/replica:0/task:0";
  if (cluster.has_job("worker")) return "/job:worker/replica:0/task:0";
  throw InvalidArgumentError(StrCat("[cluster] expected a chief or a worker to lead collectives; got ", cluster));
}

}  // namespace cohort
