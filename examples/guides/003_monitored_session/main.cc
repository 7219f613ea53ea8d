// A parameter server holds two small matrices, and a worker multiplies them 200 times in a MonitoredTrainingSession.
// README.md compares this program with the guide's. It runs on the guide's addresses, or on those of --ps_hosts and
// --worker_hosts, or of TF_CONFIG:
//
//   cohort launch --ps=1 --workers=1 -- cluster_matmul
#include <cohort/cohort.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

using namespace cohort;

namespace {

int Work(const train::Task& task) {
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
      graph, {.master = task.target(),
              .is_chief = task.is_chief(),
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

}  // namespace

int main(int argc, char** argv) try {
  train::TaskFlags flags = train::TakeTaskFlags(&argc, argv);
  if (argc > 1)
    throw InvalidArgumentError(std::string("unknown argument '") + argv[1] + "'\n" + train::TaskFlagsHelp());
  if (flags.ps_hosts.empty() && flags.worker_hosts.empty() && std::getenv("TF_CONFIG") == nullptr) {
    flags.ps_hosts = "192.168.1.1:2222";
    flags.worker_hosts = "192.168.1.12:2222";
  }
  const train::Task task = train::StartTask(flags);
  return task.job == "ps" ? task.Serve() : Work(task);
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 1;
}
