#include <algorithm>
#include <map>

#include "cohort/core/str_cat.h"
#include "tools/cohort/launcher.h"

namespace cohort::tools {

LaunchPlan::LaunchPlan(const LaunchOptions& options)
    : tasks_(TasksOf(options.jobs)),
      division_(DivideCores(AvailableCores(), static_cast<int>(tasks_.size()) - options.jobs.ps, options.jobs.ps,
                            options.threads_per_task)),
      threads_are_fixed_(options.threads_per_task.has_value()),
      ps_gpus_(options.ps_gpus),
      orphan_timeout_(options.orphan_timeout),
      chief_timeout_(options.chief_timeout),
      stop_grace_(std::max(options.grace, options.kill_after)),
      token_(NewToken()),
      run_id_(NewToken()) {
  for (const TaskId& task : tasks_) {
    if (task.InCluster()) ports_.emplace_back();
    addresses_.push_back(task.InCluster() ? ports_.back().Address() : "");
    metrics_ports_.emplace_back();
    if (task.InCluster() && options.metrics) metrics_ports_.back().emplace();
  }
}

Environment LaunchPlan::EnvironmentOf(size_t task) const {
  Environment environment = CurrentEnvironment();
  SetThreads(tasks_[task], division_, threads_are_fixed_, &environment);
  SetToken(token_, &environment);
  SetRunId(run_id_, &environment);
  SetLineBuffering(&environment);
  SetStopGrace(stop_grace_, &environment);
  SetSeconds("COHORT_ORPHAN_TIMEOUT", orphan_timeout_, &environment);
  SetSeconds("COHORT_CHIEF_TIMEOUT", chief_timeout_, &environment);
  if (metrics_ports_[task]) environment["COHORT_METRICS_PORT"] = StrCat(metrics_ports_[task]->port());
  // Nodes that name no type of device, such as the variables of parameter servers, stand on a GPU if the task has one.
  if (tasks_[task].IsPs() && !ps_gpus_) environment["CUDA_VISIBLE_DEVICES"] = "";
  environment["TF_CONFIG"] = TFConfig(task);
  return environment;
}

std::string LaunchPlan::MetricsAddress(size_t task) const {
  return metrics_ports_[task] ? StrCat("http://", metrics_ports_[task]->Address(), "/metrics") : "";
}

ClusterSpec LaunchPlan::Cluster() const {
  std::map<std::string, std::vector<std::string>> jobs;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].InCluster()) jobs[tasks_[task].job].push_back(addresses_[task]);
  }
  return ClusterSpec(jobs);
}

std::string LaunchPlan::OwnToken() const {
  const Environment current = CurrentEnvironment();
  return current.count("COHORT_TOKEN") + current.count("COHORT_TOKEN_FILE") > 0 ? "" : token_;
}

}  // namespace cohort::tools
