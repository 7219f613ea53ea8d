// A small program with parameter servers and workers. It fits y = 2 x + 10. All tasks run this file. Start them with
//   cohort launch --ps=1 --workers=2 -- ps_worker
// or start each task in a terminal of its own, with --ps_hosts, --worker_hosts, --job_name and --task_index.
#include <cohort/cohort.h>

#include <cstdio>
#include <random>

using namespace cohort;

namespace {

constexpr int64_t kSteps = 4000;

int Train(const train::Task& task) {
  Graph graph;
  ops::Variable step, weight, bias;
  {
    const DeviceScope scope(graph, task.replica_device());
    step = ops::GetOrCreateGlobalStep(graph);
    weight = ops::GetVariable(graph, "weight", Shape{}, DType::kFloat32, initializers::Zeros());
    bias = ops::GetVariable(graph, "bias", Shape{}, DType::kFloat32, initializers::Zeros());
  }
  const DeviceScope scope(graph, task.replica_device());
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1}, "x");
  const Output y = ops::Placeholder(graph, DType::kFloat32, Shape{-1}, "y");
  const Output loss = ops::Mean(ops::Square(x * weight + bias - y));
  Node* train_op = train::GradientDescentOptimizer(0.05).Minimize(loss, step);

  train::Supervisor supervisor(graph, {.is_chief = task.is_chief(), .global_step = step, .server = task.server.get()});
  train::ManagedSession session = supervisor.managed_session(task.target());
  std::mt19937 random(task.index);
  std::normal_distribution<float> normal;
  for (int64_t now = 0; now < kSteps && !supervisor.should_stop();) {
    std::vector<float> xs(16), ys(16);
    for (size_t i = 0; i < xs.size(); ++i) ys[i] = 2 * (xs[i] = normal(random)) + 10;
    now = session->Run({{x, Tensor::Vector(xs)}, {y, Tensor::Vector(ys)}}, {step}, {train_op})[step].scalar<int64_t>();
  }
  const RunResults fitted = session->Run({weight, bias});
  std::printf("worker %d: weight %.3f, bias %.3f\n", task.index, fitted[weight].scalar<float>(),
              fitted[bias].scalar<float>());
  session.Close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  DumpStateOnSignal();  // SIGUSR1 prints what this task does
  const train::Task task = train::StartTask(train::TakeTaskFlags(&argc, argv));
  return task.job == "ps" ? task.Serve() : Train(task);
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 1;
}
