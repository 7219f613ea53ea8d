#include "examples/task.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <vector>

namespace examples {
namespace {

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  std::stringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

// The name of a long flag with '_' for '-'.
std::string Underscored(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin() + 2, argument.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return argument;
}

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
  if (!flags.ps_hosts.empty()) jobs["ps"] = Split(flags.ps_hosts);
  jobs["worker"] = Split(flags.worker_hosts);
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

}  // namespace

CLI::Validator AtLeast(double least) {
  return CLI::Validator(
      [least](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
        std::ostringstream error;
        error << "expected a number of at least " << least << "; got '" << text << "'";
        return error.str();
      },
      "");
}

void AddClusterFlags(CLI::App& app, ClusterFlags* flags) {
  app.add_option("--ps_hosts", flags->ps_hosts, "Comma-separated list of hostname:port pairs");
  app.add_option("--worker_hosts", flags->worker_hosts, "Comma-separated list of hostname:port pairs");
  app.add_option("--job_name", flags->job_name, "One of 'ps', 'worker'");
  app.add_option("--task_index", flags->task_index, "Index of task within the job")->check(AtLeast(0));
  app.add_option("--bind", flags->bind, "host:port to listen on, where that is not the address in the hosts");
  app.add_flag("--allow_insecure", flags->allow_insecure, "Work without TLS beyond this machine");
  app.footer("Without hosts the cluster is that of TF_CONFIG; without TF_CONFIG the program trains alone.");
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
  cohort::ServerOptions options;
  options.bind = flags.bind;
  options.allow_insecure = flags.allow_insecure;
  task.server = std::make_unique<cohort::Server>(task.cluster, task.job, task.index, options);
  return task;
}

int Main(int argc, char** argv, CLI::App& app, const std::function<int()>& run) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  app.name(std::filesystem::path(argv[0]).filename().string());
  for (CLI::Option* option : app.get_options()) option->capture_default_str();  // for --help
  std::vector<std::string> arguments;                                           // CLI11 takes them from the back
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = Underscored(argv[i]);
    if (argument.starts_with("--") && argument.ends_with('=')) {  // CLI11 would take the next word for an empty value
      argument.pop_back();
      arguments.emplace_back();
    }
    arguments.push_back(std::move(argument));
  }
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
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
