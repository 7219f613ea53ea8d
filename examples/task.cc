#include "examples/task.h"

#include <chrono>
#include <cstdio>
#include <vector>

#include "cohort/core/str_split.h"

namespace examples {
namespace {

std::string Given(const ClusterFlags& flags) {
  std::string given;
  if (!flags.job_name.empty()) given += " --job_name=" + flags.job_name;
  if (flags.task_index) given += " --task_index=" + std::to_string(*flags.task_index);
  return given;
}

void TakePlaceFromHosts(const ClusterFlags& flags, Task* task) {
  if (flags.worker_hosts.empty()) {
    throw cohort::InvalidArgumentError("[task] expected --worker_hosts beside --ps_hosts=" + flags.ps_hosts +
                                       "; got none; give each task the same two lists");
  }
  std::map<std::string, std::vector<std::string>> jobs;
  if (!flags.ps_hosts.empty()) jobs["ps"] = cohort::StrSplit(flags.ps_hosts, ',');
  jobs["worker"] = cohort::StrSplit(flags.worker_hosts, ',');
  task->cluster = cohort::ClusterSpec(jobs);
  task->job = flags.job_name;
  task->index = flags.task_index.value_or(0);
}

void TakePlace(const ClusterFlags& flags, Task* task) {
  if (!flags.ps_hosts.empty() || !flags.worker_hosts.empty()) return TakePlaceFromHosts(flags, task);
  const cohort::TFConfigClusterResolver resolver;
  task->cluster = resolver.cluster_spec();
  if (task->cluster.empty()) {
    if (Given(flags).empty()) return;
    throw cohort::InvalidArgumentError(
        "[task] expected --ps_hosts and --worker_hosts, or a cluster in TF_CONFIG, with" + Given(flags) +
        "; got neither; without a cluster the program trains alone, and is started without these flags");
  }
  task->job = resolver.task_type().value_or(flags.job_name);
  task->index = resolver.task_id().value_or(flags.task_index.value_or(0));
  if ((!flags.job_name.empty() && flags.job_name != task->job) ||
      (flags.task_index && *flags.task_index != task->index)) {
    throw cohort::InvalidArgumentError("[task] expected flags that say what TF_CONFIG says, " +
                                       cohort::TaskName(task->job, task->index) + "; got" + Given(flags) +
                                       "; leave them out, or unset TF_CONFIG and give --ps_hosts and --worker_hosts");
  }
}

std::optional<std::chrono::milliseconds> Milliseconds(const std::optional<double>& seconds) {
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
}

}  // namespace

void AddClusterFlags(CommandLine& line, ClusterFlags* flags) {
  line.Add("--ps_hosts", &flags->ps_hosts, "Comma-separated list of hostname:port pairs");
  line.Add("--worker_hosts", &flags->worker_hosts, "Comma-separated list of hostname:port pairs");
  line.Add("--job_name", &flags->job_name, "One of 'ps', 'worker'");
  line.Add("--task_index", &flags->task_index, "Index of task within the job", AtLeast(0));
  line.Add("--bind", &flags->bind, "host:port to listen on, where that is not the address in the hosts");
  line.AddSwitch("--allow_insecure", &flags->allow_insecure, "Work without TLS beyond this machine");
  line.Add(
      "--orphan_timeout", &flags->orphan_timeout,
      "Seconds after which a task that serves ends if the chief is gone; 0: never (COHORT_ORPHAN_TIMEOUT, else 60)",
      AtLeast(0));
  line.Add(
      "--chief_timeout", &flags->chief_timeout,
      "Seconds after which a task that serves ends if no chief has come; 0: never (COHORT_CHIEF_TIMEOUT, else 7200)",
      AtLeast(0));
  line.SetFooter("Without hosts the cluster is that of TF_CONFIG; without TF_CONFIG the program trains alone.");
}

cohort::DeviceFunction Task::replica_device(const std::string& worker) const {
  if (server == nullptr) return [](const cohort::NodeDraft& draft) { return draft.device; };
  return cohort::train::ReplicaDeviceSetter({.worker_device = worker.empty() ? device() : worker, .cluster = cluster});
}

Task StartTask(const ClusterFlags& flags) {
  Task task;
  TakePlace(flags, &task);
  if (task.cluster.empty()) return task;
  if (task.job.empty()) {
    throw cohort::InvalidArgumentError("[task] expected to be told which task of " + task.cluster.ToString() +
                                       " this is; give --job_name and --task_index, or \"task\" in TF_CONFIG");
  }
  cohort::CheckRole(task.cluster, task.job, task.index);
  if (task.job == "evaluator") {
    throw cohort::InvalidArgumentError(
        "[task] expected a task that trains or serves (chief, worker or ps); got evaluator " +
        std::to_string(task.index) + ", which this program does not know; start it without an evaluator");
  }
  cohort::ServerOptions options;
  options.bind = flags.bind;
  options.allow_insecure = flags.allow_insecure;
  options.orphan_timeout = Milliseconds(flags.orphan_timeout);
  options.chief_timeout = Milliseconds(flags.chief_timeout);
  task.server = std::make_unique<cohort::Server>(task.cluster, task.job, task.index, options);
  return task;
}

int Main(int argc, char** argv, CommandLine& line, const std::function<int()>& run) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (const std::optional<int> over = line.Parse(argc, argv)) return *over;
  try {
    return run();
  } catch (const cohort::Error& e) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[0], std::string(cohort::CodeName(e.code())).c_str(), e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
  }
  return 1;
}

}  // namespace examples
