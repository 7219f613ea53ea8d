#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/server.h"
#include "cohort/cluster/status/state_dump.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/str_split.h"
#include "cohort/registration.h"
#include "tools/cohort/command.h"

namespace cohort::tools {
namespace {

struct ServeFlags {
  std::string ps_hosts;
  std::string worker_hosts;
  std::string job_name;
  int task_index = -1;
  ServerOptions server;
  std::optional<double> orphan_timeout;
  std::optional<double> chief_timeout;
};

std::optional<std::chrono::milliseconds> Milliseconds(const std::optional<double>& seconds) {
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
}

// Returns the cluster of the flags if they name one, else that of TF_CONFIG.
ClusterSpec ClusterOf(const ServeFlags& flags, const TFConfigClusterResolver& resolver) {
  if (flags.ps_hosts.empty() && flags.worker_hosts.empty()) return resolver.cluster_spec();
  std::map<std::string, std::vector<std::string>> jobs;
  if (!flags.ps_hosts.empty()) jobs["ps"] = StrSplit(flags.ps_hosts, ',');
  if (!flags.worker_hosts.empty()) jobs["worker"] = StrSplit(flags.worker_hosts, ',');
  return ClusterSpec(jobs);
}

int Serve(const ServeFlags& flags) {
  const TFConfigClusterResolver resolver;
  const ClusterSpec cluster = ClusterOf(flags, resolver);
  if (cluster.empty()) {
    return UsageError("cohort serve", "no cluster: set TF_CONFIG, or give --ps_hosts and --worker_hosts");
  }
  ServerOptions options = flags.server;
  options.orphan_timeout = Milliseconds(flags.orphan_timeout);
  options.chief_timeout = Milliseconds(flags.chief_timeout);
  DumpStateOnSignal();
  const std::string job = flags.job_name.empty() ? resolver.task_type().value_or("") : flags.job_name;
  const int task = flags.task_index < 0 ? resolver.task_id().value_or(-1) : flags.task_index;
  Server server(cluster, job, task, options);
  std::cout << "serving /job:" << server.job() << "/task:" << server.task() << " at " << server.Target() << std::endl;
  server.Join();
  return 0;
}

}  // namespace

int ServeCommand(const Arguments& arguments) {
  CLI::App app("Runs a task that only serves its devices to the sessions of other tasks.", "cohort serve");
  app.set_help_flag("-h,--help", "Print this text");
  app.footer(
      "TF_CONFIG describes the cluster and the task, unless flags do. The task ends with exit code 0 when the chief "
      "says\n"
      "that training is done. It ends with 1 if the chief has been gone for the orphan timeout, or if no chief has "
      "come\n"
      "within the chief timeout. SIGUSR1 makes it print what it does to stderr.");
  ServeFlags flags;
  app.add_option("--ps_hosts", flags.ps_hosts, "Addresses of the parameter servers, host:port, separated by commas");
  app.add_option("--worker_hosts", flags.worker_hosts, "Addresses of the workers, host:port, separated by commas");
  app.add_option("--job_name", flags.job_name, "Job of this task, such as ps");
  app.add_option("--task_index", flags.task_index, "Index of this task in its job");
  app.add_option("--bind", flags.server.bind, "host:port to listen on, if that is not the address in the cluster");
  app.add_option("--tls_ca", flags.server.tls.ca_file,
                 "File of the authority's certificate, for TLS (COHORT_TLS_CA, or COHORT_TLS_FOLDER)")
      ->type_name("FILE");
  app.add_option("--tls_certificate", flags.server.tls.certificate_file,
                 "File of this task's certificate (COHORT_TLS_CERTIFICATE, or COHORT_TLS_FOLDER)")
      ->type_name("FILE");
  app.add_option("--tls_key", flags.server.tls.key_file,
                 "File of its private key (COHORT_TLS_KEY, or COHORT_TLS_FOLDER)")
      ->type_name("FILE");
  app.add_flag("--allow_insecure", flags.server.allow_insecure, "Listen beyond this machine without TLS");
  app.add_flag("--allow_insecure_collectives", flags.server.allow_insecure_collectives,
               "With TLS, allow collectives by Gloo, whose connections are not encrypted");
  app.add_option("--allow_path", flags.server.allow_path,
                 "Let the graphs of other tasks use files in this folder only; may be given several times (any path)")
      ->type_name("FOLDER");
  app.add_option("--orphan_timeout", flags.orphan_timeout,
                 "End if the chief has been gone for so long; 0 = never (COHORT_ORPHAN_TIMEOUT, else 60)")
      ->check(CLI::Range(0.0, 1e9).description(""))
      ->type_name("SECONDS");
  app.add_option("--chief_timeout", flags.chief_timeout,
                 "End if no chief has come for so long; 0 = never (COHORT_CHIEF_TIMEOUT, else 7200)")
      ->check(CLI::Range(0.0, 1e9).description(""))
      ->type_name("SECONDS");
  app.add_option("--metrics_port", flags.server.metrics_port,
                 "Port of 127.0.0.1 for the pages /metrics and /healthz; 0 = any (COHORT_METRICS_PORT, else none)")
      ->check(CLI::Range(0, 65535).description(""))
      ->type_name("PORT");
  app.add_option("--threads", flags.server.config.intra_op_parallelism_threads,
                 "Threads that one kernel may use; 0 = one for each core (0)")
      ->check(CLI::Range(0, 65536).description(""))
      ->type_name("N");
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  try {
    return Serve(flags);
  } catch (const Error& e) {
    std::cerr << "cohort serve: " << CodeName(e.code()) << ": " << e.what() << "\n";
    return 1;
  }
}

}  // namespace cohort::tools
