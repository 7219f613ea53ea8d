// Multiplies two variables that lie on the parameter servers. The worker computes the product, and prints the device
// of each node:
//
//   cohort launch --ps=1 --workers=1 -- cluster_matmul --last_step=200
#include <cstdio>

#include "examples/task.h"

namespace {

using namespace cohort;

int Run(const examples::ClusterFlags& cluster, int64_t last_step) {
  const examples::Task task = examples::StartTask(cluster);
  if (task.job == "ps") {
    task.server->Join();
    return 0;
  }
  Graph graph;
  ops::Variable global_step;
  Output product, step_after;
  {
    const DeviceScope scope(graph, task.replica_device());
    global_step = ops::GetOrCreateGlobalStep(graph);
    const ops::Variable x(graph, Tensor::FromValues<int32_t>({1, 2, 3, 4}, Shape{1, 4}), {.name = "x"});
    const ops::Variable w(graph, Tensor::FromValues<int32_t>({2, 2, 2, 2}, Shape{4, 1}), {.name = "w"});
    product = ops::MatMul(x, w);
    Node* count = global_step.AssignAdd(ops::Const(graph, int64_t{1}));
    const ControlDependencies after(graph, {count});
    step_after = global_step.Read();
  }
  train::Supervisor supervisor(graph, {.is_chief = task.is_chief(), .server = task.server.get()});
  SessionConfig config;
  config.log_device_placement = true;
  train::ManagedSession session = supervisor.managed_session(task.target(), config);
  std::vector<Tensor> values;
  do {
    values = session->Run({product, step_after});
  } while (values[1].scalar<int64_t>() < last_step && !supervisor.should_stop());
  std::printf("step: %lld, product: %d\n", static_cast<long long>(values[1].scalar<int64_t>()),
              values[0].scalar<int32_t>());
  session.Close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line(
      "Multiplies two matrices that lie on parameter servers, and prints the device of each node.");
  examples::ClusterFlags cluster;
  int64_t last_step = 200;
  examples::AddClusterFlags(line, &cluster);
  line.Add("--last_step", &last_step, "Global step at which the workers stop", examples::AtLeast(1));
  return examples::Main(argc, argv, line, [&] { return Run(cluster, last_step); });
}
