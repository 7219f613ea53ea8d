#include "examples/task.h"

#include <cstdio>
#include <optional>
#include <string>

namespace examples {

void AddClusterFlags(CommandLine& line, ClusterFlags* flags) {
  line.Add("--ps_hosts", &flags->ps_hosts, "Addresses of the parameter servers, host:port, separated by commas");
  line.Add("--worker_hosts", &flags->worker_hosts, "Addresses of the workers, host:port, separated by commas");
  line.Add("--job_name", &flags->job_name, "Job of this task: ps or worker");
  line.Add("--task_index", &flags->task_index, "Index of this task in its job", AtLeast(0));
  line.Add("--bind", &flags->bind, "host:port to listen on, if that is not the address in the hosts");
  line.AddSwitch("--allow_insecure", &flags->allow_insecure, "Listen beyond this machine without TLS");
  line.Add(
      "--orphan_timeout", &flags->orphan_timeout,
      "A serving task ends if the chief has been gone for so many seconds; 0: never (COHORT_ORPHAN_TIMEOUT, else 60)",
      AtLeast(0));
  line.Add("--chief_timeout", &flags->chief_timeout,
           "A serving task ends if no chief has come for so many seconds; 0: never (COHORT_CHIEF_TIMEOUT, else 7200)",
           AtLeast(0));
  line.SetFooter("Without hosts, TF_CONFIG describes the cluster. Without TF_CONFIG, the program trains alone.");
}

void SayIfDone(int64_t step, int64_t last_step, const std::string& flag) {
  if (step < last_step) return;
  std::fprintf(stderr,
               "The training is at step %lld, and so has reached its last one (%s, %lld) already. Give it more steps, "
               "begin anew with --fresh, or use another --logdir.\n",
               static_cast<long long>(step), flag.c_str(), static_cast<long long>(last_step));
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
