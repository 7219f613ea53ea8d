// TakeTaskFlags and StartTask. The flags are one table (kFlags). Parsing removes them from the command line. StartTask
// takes job and index from the flags or from TF_CONFIG (TakePlace), and starts the server.
#include "cohort/train/task.h"

#include <charconv>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "cohort/cluster/roles.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"
#include "cohort/core/text/str_split.h"
#include "cohort/train/device_setter.h"

namespace cohort::train {
namespace {

template <typename T>
T Number(std::string_view flag, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw InvalidArgumentError(StrCat("[task] expected a number of at least 0 for --", flag, "; got '", text, "'"));
  }
  return value;
}

std::chrono::milliseconds Seconds(std::string_view flag, const std::string& text) {
  constexpr double kMost = 1e9;  // 30 years
  const auto seconds = Number<double>(flag, text);
  if (!(seconds <= kMost)) {
    throw InvalidArgumentError(
        StrCat("[task] expected at most ", kMost, " seconds for --", flag, "; got '", text, "'"));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

int Port(std::string_view flag, const std::string& text) {
  const int port = Number<int>(flag, text);
  if (port <= 65535) return port;
  throw InvalidArgumentError(StrCat("[task] expected a port from 0 to 65535 for --", flag, "; got '", text, "'"));
}

bool Truth(std::string_view flag, const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw InvalidArgumentError(StrCat("[task] expected true or false for --", flag, "; got '", text, "'"));
}

struct Flag {
  const char* name;
  bool is_switch;  // its value may be left out
  void (*set)(const char* name, const std::string& text, TaskFlags* flags);
  const char* help;
};

constexpr Flag kFlags[] = {
    {"ps_hosts", false, [](const char*, const std::string& text, TaskFlags* flags) { flags->ps_hosts = text; },
     "Comma-separated list of hostname:port pairs"},
    {"worker_hosts", false, [](const char*, const std::string& text, TaskFlags* flags) { flags->worker_hosts = text; },
     "Comma-separated list of hostname:port pairs"},
    {"job_name", false, [](const char*, const std::string& text, TaskFlags* flags) { flags->job_name = text; },
     "One of 'ps', 'worker'"},
    {"task_index", false,
     [](const char* name, const std::string& text, TaskFlags* flags) { flags->task_index = Number<int>(name, text); },
     "Index of task within the job"},
    {"bind", false, [](const char*, const std::string& text, TaskFlags* flags) { flags->bind = text; },
     "host:port to listen on, if that is not the address in the hosts"},
    {"tls_ca", false, [](const char*, const std::string& text, TaskFlags* flags) { flags->tls.ca_file = text; },
     "File of the authority's certificate, for TLS (COHORT_TLS_CA, or COHORT_TLS_FOLDER)"},
    {"tls_certificate", false,
     [](const char*, const std::string& text, TaskFlags* flags) { flags->tls.certificate_file = text; },
     "File of this task's certificate, for TLS (COHORT_TLS_CERTIFICATE, or COHORT_TLS_FOLDER)"},
    {"tls_key", false, [](const char*, const std::string& text, TaskFlags* flags) { flags->tls.key_file = text; },
     "File of the certificate's private key, for TLS (COHORT_TLS_KEY, or COHORT_TLS_FOLDER)"},
    {"allow_insecure", true,
     [](const char* name, const std::string& text, TaskFlags* flags) { flags->allow_insecure = Truth(name, text); },
     "Work without TLS beyond this machine"},
    {"allow_insecure_collectives", true,
     [](const char* name, const std::string& text, TaskFlags* flags) {
       flags->allow_insecure_collectives = Truth(name, text);
     },
     "With TLS, allow collectives by Gloo, whose connections are not encrypted"},
    {"allow_path", false,
     [](const char*, const std::string& text, TaskFlags* flags) { flags->allow_path.push_back(text); },
     "Let the graphs of other tasks use files in this folder only; may be given several times (any path)"},
    {"orphan_timeout", false,
     [](const char* name, const std::string& text, TaskFlags* flags) { flags->orphan_timeout = Seconds(name, text); },
     "Seconds after which a task that serves ends if the chief is gone; 0: never (COHORT_ORPHAN_TIMEOUT, else 60)"},
    {"chief_timeout", false,
     [](const char* name, const std::string& text, TaskFlags* flags) { flags->chief_timeout = Seconds(name, text); },
     "Seconds after which a task that serves ends if no chief has come; 0: never (COHORT_CHIEF_TIMEOUT, else 7200)"},
    {"metrics_port", false,
     [](const char* name, const std::string& text, TaskFlags* flags) { flags->metrics_port = Port(name, text); },
     "Port of 127.0.0.1 for the pages /metrics and /healthz; 0: any free port (COHORT_METRICS_PORT, else none)"},
};

const Flag* FindFlag(const std::string& name) {
  for (const Flag& flag : kFlags) {
    if (name == flag.name) return &flag;
  }
  return nullptr;
}

// Throws if an unknown flag differs from one of these by at most two letters. Other unknown flags belong to the
// program.
void RefuseMisspelt(const std::string& name) {
  constexpr size_t kShortest = 6;  // shorter names are near too many others
  for (const Flag& flag : kFlags) {
    if (name.size() < kShortest || EditDistance(name, flag.name) > 2) continue;
    throw InvalidArgumentError(StrCat("[task] there is no flag --", name, "; did you mean --", flag.name, "?"));
  }
}

std::string Given(const TaskFlags& flags) {
  std::string given;
  if (!flags.job_name.empty()) given += " --job_name=" + flags.job_name;
  if (flags.task_index) given += StrCat(" --task_index=", *flags.task_index);
  return given;
}

void TakePlaceFromHosts(const TaskFlags& flags, Task* task) {
  if (flags.worker_hosts.empty()) {
    throw InvalidArgumentError(StrCat("[task] expected --worker_hosts beside --ps_hosts=", flags.ps_hosts,
                                      "; got none; give each task the same two lists"));
  }
  std::map<std::string, std::vector<std::string>> jobs;
  if (!flags.ps_hosts.empty()) jobs["ps"] = StrSplit(flags.ps_hosts, ',');
  jobs["worker"] = StrSplit(flags.worker_hosts, ',');
  task->cluster = ClusterSpec(jobs);
  task->job = flags.job_name;
  task->index = flags.task_index.value_or(0);
}

void TakePlace(const TaskFlags& flags, Task* task) {
  if (!flags.ps_hosts.empty() || !flags.worker_hosts.empty()) return TakePlaceFromHosts(flags, task);
  const TFConfigClusterResolver resolver;
  task->cluster = resolver.cluster_spec();
  if (task->cluster.empty()) {
    if (Given(flags).empty()) return;
    throw InvalidArgumentError(
        StrCat("[task] expected --ps_hosts and --worker_hosts, or a cluster in TF_CONFIG, with", Given(flags),
               "; got neither; without a cluster the program trains alone, and is started without these flags"));
  }
  task->job = resolver.task_type().value_or(flags.job_name);
  task->index = resolver.task_id().value_or(flags.task_index.value_or(0));
  if ((!flags.job_name.empty() && flags.job_name != task->job) ||
      (flags.task_index && *flags.task_index != task->index)) {
    throw InvalidArgumentError(StrCat("[task] expected flags that say what TF_CONFIG says, ",
                                      TaskName(task->job, task->index), "; got", Given(flags),
                                      "; leave them out, or unset TF_CONFIG and give --ps_hosts and --worker_hosts"));
  }
}

}  // namespace

TaskFlags TakeTaskFlags(int* argc, char** argv) {
  TaskFlags flags;
  int kept = 1;
  int at = 1;
  for (; at < *argc && std::string_view(argv[at]) != "--"; ++at) {
    const std::string word = argv[at];
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    const Flag* flag = nullptr;
    if (name.starts_with("--")) {
      name.erase(0, 2);
      for (char& c : name) c = c == '-' ? '_' : c;
      flag = FindFlag(name);
      if (flag == nullptr) RefuseMisspelt(name);
    }
    if (flag == nullptr) {
      argv[kept++] = argv[at];
    } else if (equals != std::string::npos) {
      flag->set(flag->name, word.substr(equals + 1), &flags);
    } else if (flag->is_switch) {
      flag->set(flag->name, "true", &flags);
    } else if (at + 1 < *argc && !std::string_view(argv[at + 1]).starts_with("--")) {
      flag->set(flag->name, argv[++at], &flags);
    } else {
      throw InvalidArgumentError(StrCat("[task] expected a value for --", name, "; got none"));
    }
  }
  for (; at < *argc; ++at) argv[kept++] = argv[at];
  *argc = kept;
  argv[kept] = nullptr;
  return flags;
}

std::string TaskFlagsHelp() {
  std::string help;
  for (const Flag& flag : kFlags) help += StrCat("  --", flag.name, "  ", flag.help, "\n");
  return help;
}

bool Task::is_chief() const { return IsChief(cluster, job, index); }
int Task::num_workers() const { return WorkerCount(cluster, job); }
std::string Task::device() const { return server == nullptr ? "" : TaskName(job, index); }

DeviceFunction Task::replica_device(const std::string& worker) const {
  if (server == nullptr) return [](const NodeDraft& draft) { return draft.device; };
  return ReplicaDeviceSetter({.worker_device = worker.empty() ? device() : worker, .cluster = cluster});
}

int Task::Serve() const {
  if (server == nullptr) throw FailedPreconditionError("[task] expected a cluster to serve in; got none");
  server->Join();
  return 0;
}

Task StartTask(const TaskFlags& flags) {
  Task task;
  TakePlace(flags, &task);
  if (task.cluster.empty()) return task;
  if (task.job.empty()) {
    throw InvalidArgumentError(StrCat("[task] expected to be told which task of ", task.cluster.ToString(),
                                      " this is; give --job_name and --task_index, or \"task\" in TF_CONFIG"));
  }
  CheckRole(task.cluster, task.job, task.index);
  if (task.job == "evaluator") {
    throw InvalidArgumentError(
        StrCat("[task] expected a task that trains or serves (chief, worker or ps); got evaluator ", task.index,
               ", which this program does not know; start it without an evaluator"));
  }
  ServerOptions options;
  options.bind = flags.bind;
  options.tls = flags.tls;
  options.allow_insecure = flags.allow_insecure;
  options.allow_insecure_collectives = flags.allow_insecure_collectives;
  options.allow_path = flags.allow_path;
  options.orphan_timeout = flags.orphan_timeout;
  options.chief_timeout = flags.chief_timeout;
  options.metrics_port = flags.metrics_port;
  task.server = std::make_unique<Server>(task.cluster, task.job, task.index, options);
  return task;
}

}  // namespace cohort::train
