// A parameter server holds two small matrices, and a worker multiplies them 200 times in a MonitoredTrainingSession.
// README.md compares this program with the guide's. It runs on the guide's addresses, or on those of --ps_hosts and
// --worker_hosts, or of TF_CONFIG:
//
//   cohort launch --ps=1 --workers=1 -- cluster_matmul
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "examples/task.h"

using namespace cohort;

namespace {

struct Flags {
  examples::ClusterFlags cluster;
  std::string master;    // "": this task's server
  std::string is_chief;  // "": whether the task index is 0
};

int Work(const train::Task& task, const Flags& flags) {
  Graph graph;
  Output mat;
  Node* count = nullptr;
  {
    const DeviceScope scope(graph, task.replica_device("job:worker/task:0/cpu:0/"));
    const ops::Variable global_step = ops::GetOrCreateGlobalStep(graph);  // the hook needs it
    const ops::Variable x(graph, Tensor::FromValues<int32_t>({1, 2, 3, 4}, Shape{1, 4}), {.name = "x"});
    const ops::Variable w(graph, Tensor::FromValues<int32_t>({2, 2, 2, 2}, Shape{4, 1}), {.name = "w"});
    mat = ops::MatMul(x, w);
    count = global_step.AssignAdd(1);  // without it the step stands still, and StopAtStepHook never stops the loop
  }
  train::MonitoredSession mon_sess = train::MonitoredTrainingSession(
      graph, {.master = flags.master.empty() ? task.target() : flags.master,
              .is_chief = flags.is_chief.empty() ? task.is_chief() : flags.is_chief == "true",
              .hooks = {std::make_shared<train::StopAtStepHook>(train::StopAtStepHook::Options{.last_step = 200})},
              .config = {.log_device_placement = true},
              .server = task.server.get()});
  int runs = 0;
  Tensor product;
  while (!mon_sess.should_stop()) {
    product = mon_sess.Run({}, {mat}, {count}).front();
    ++runs;
  }
  mon_sess.Close();
  std::printf("runs: %d, mat: %d\n", runs, product.scalar<int32_t>());
  return 0;
}

int Run(Flags flags) {
  if (flags.cluster.ps_hosts.empty() && flags.cluster.worker_hosts.empty() && std::getenv("TF_CONFIG") == nullptr) {
    flags.cluster.ps_hosts = "192.168.1.1:2222";
    flags.cluster.worker_hosts = "192.168.1.12:2222";
  }
  const train::Task task = train::StartTask(flags.cluster);
  return task.job == "ps" ? task.Serve() : Work(task, flags);
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("Multiplies two matrices of a parameter server 200 times in a MonitoredTrainingSession.");
  Flags flags;
  examples::AddClusterFlags(line, &flags.cluster);
  line.Add("--master", &flags.master, "Target of the session, grpc://host:port. Empty: this task's server");
  line.Add("--is_chief", &flags.is_chief, "Whether this worker prepares the model. Empty: if its index is 0",
           examples::OneOf({"", "true", "false"}));
  line.SetFooter("Without hosts, TF_CONFIG describes the cluster; without TF_CONFIG, it is the guide's two addresses.");
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
