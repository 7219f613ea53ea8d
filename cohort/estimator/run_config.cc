#include "cohort/estimator/run_config.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::estimator {
namespace {

constexpr const char* kMaster = "master";  // the old name of the chief

std::string Text(bool value) { return value ? "True" : "False"; }

std::string Seconds(std::chrono::milliseconds value) { return StrCat(std::chrono::duration<double>(value).count()); }

template <typename T>
std::string OrNone(const std::optional<T>& value) {
  return value ? StrCat(*value) : "None";
}

// The ids of tasks: the chief is 0, then come the other jobs but ps, sorted by name, then ps.
int GlobalId(const ClusterSpec& cluster, const std::string& chief, const std::string& type, int index) {
  std::vector<std::string> order{chief};
  for (const std::string& job : cluster.jobs()) {
    if (job != chief && job != "ps") order.push_back(job);
  }
  order.emplace_back("ps");
  int id = 0;
  for (const std::string& job : order) {
    if (job == type) return id + index;
    if (cluster.has_job(job)) id += cluster.num_tasks(job);
  }
  return id;
}

void CheckNotNegative(const char* field, double value) {
  if (value < 0) throw InvalidArgumentError(StrCat("[RunConfig] expected ", field, " of at least 0; got ", value));
}

}  // namespace

TaskRole RoleOf(const RunConfig& config) {
  const char* variable = std::getenv("TF_CONFIG");
  const TFConfig given = ParseTFConfig(config.tf_config.value_or(variable == nullptr ? "" : variable));
  TaskRole role;
  if (given.cluster.empty() && given.task_type.value_or("worker") != "evaluator") {
    if (given.task_type.value_or("worker") == "worker" && given.task_index.value_or(0) == 0) return role;
    throw InvalidArgumentError(StrCat("[RunConfig] expected a cluster in TF_CONFIG for the task ", *given.task_type,
                                      "; got none, and without one the only task is worker 0"));
  }
  if (!given.task_type || !given.task_index) {
    throw InvalidArgumentError(StrCat("[RunConfig] expected type and index of this task in TF_CONFIG; got no ",
                                      given.task_type ? "index" : "type"));
  }
  role.task_type = *given.task_type;
  role.task_id = *given.task_index;
  if (role.task_type == "evaluator") {
    role.is_chief = false;
    role.num_worker_replicas = 0;
    return role;
  }
  const std::string chief = given.cluster.has_job(kMaster) ? kMaster : "chief";
  if (!given.cluster.has_job(chief) || given.cluster.num_tasks(chief) != 1) {
    throw InvalidArgumentError(StrCat(
        "[RunConfig] expected exactly one \"chief\" task in the cluster of TF_CONFIG; got ", given.cluster.ToString()));
  }
  role.cluster_spec = given.cluster;
  role.is_chief = role.task_type == chief;
  role.num_ps_replicas = given.cluster.has_job("ps") ? given.cluster.num_tasks("ps") : 0;
  role.num_worker_replicas = 1 + (given.cluster.has_job("worker") ? given.cluster.num_tasks("worker") : 0);
  role.global_id_in_cluster = GlobalId(given.cluster, chief, role.task_type, role.task_id);
  if (given.cluster.total_tasks() > 1) {
    role.master = StrCat("grpc://", given.cluster.task_address(role.task_type, role.task_id));
  }
  return role;
}

void CheckRunConfig(const RunConfig& config) {
  if (config.save_checkpoints_steps && config.save_checkpoints_interval) {
    throw InvalidArgumentError(
        StrCat("[RunConfig] expected at most one of save_checkpoints_steps and save_checkpoints_interval; got both: ",
               *config.save_checkpoints_steps, " and ", Seconds(*config.save_checkpoints_interval), " s"));
  }
  CheckNotNegative("save_summary_steps", static_cast<double>(config.save_summary_steps));
  CheckNotNegative("save_checkpoints_steps", static_cast<double>(config.save_checkpoints_steps.value_or(0)));
  CheckNotNegative("save_checkpoints_interval",
                   static_cast<double>(config.save_checkpoints_interval.value_or(std::chrono::seconds(0)).count()));
  CheckNotNegative("keep_checkpoint_max", config.keep_checkpoint_max);
  CheckNotNegative("keep_checkpoint_every_n_hours", config.keep_checkpoint_every_n_hours);
  CheckNotNegative("log_step_count_steps", static_cast<double>(config.log_step_count_steps));
}

std::string ToString(const RunConfig& config, const TaskRole& role) {
  std::optional<std::string> interval;
  if (config.save_checkpoints_interval) {
    interval = Seconds(*config.save_checkpoints_interval);
  } else if (!config.save_checkpoints_steps) {
    interval = "600";
  }
  std::optional<std::string> delay;
  if (config.experimental_max_worker_delay) delay = Seconds(*config.experimental_max_worker_delay);
  const std::string session =
      StrCat("allow_soft_placement: ", config.session_config.allow_soft_placement ? "true" : "false", "\n");
  const std::pair<const char*, std::string> fields[] = {
      {"model_dir", StrCat("'", config.model_dir, "'")},
      {"tf_random_seed", OrNone(config.tf_random_seed)},
      {"save_summary_steps", StrCat(config.save_summary_steps)},
      {"save_checkpoints_steps", OrNone(config.save_checkpoints_steps)},
      {"save_checkpoints_secs", OrNone(interval)},
      {"session_config", session},
      {"keep_checkpoint_max", StrCat(config.keep_checkpoint_max)},
      {"keep_checkpoint_every_n_hours", StrCat(config.keep_checkpoint_every_n_hours)},
      {"log_step_count_steps", StrCat(config.log_step_count_steps)},
      {"train_distribute", "None"},
      {"device_fn", config.device_fn ? "<function>" : "None"},
      {"protocol", "None"},
      {"eval_distribute", "None"},
      {"experimental_distribute", "None"},
      {"experimental_max_worker_delay_secs", OrNone(delay)},
      {"session_creation_timeout_secs", Seconds(config.session_creation_timeout)},
      {"checkpoint_save_graph_def", Text(config.checkpoint_save_graph_def)},
      {"service", "None"},
      {"cluster_spec", role.cluster_spec.ToString()},
      {"task_type", StrCat("'", role.task_type, "'")},
      {"task_id", StrCat(role.task_id)},
      {"global_id_in_cluster", StrCat(role.global_id_in_cluster)},
      {"master", StrCat("'", role.master, "'")},
      {"evaluation_master", "''"},
      {"is_chief", Text(role.is_chief)},
      {"num_ps_replicas", StrCat(role.num_ps_replicas)},
      {"num_worker_replicas", StrCat(role.num_worker_replicas)}};
  std::vector<std::string> parts;
  for (const auto& [name, value] : fields) parts.push_back(StrCat("'_", name, "': ", value));
  return StrCat("{", StrJoin(parts, ", "), "}");
}

}  // namespace cohort::estimator
