// A task of a cluster that trains with a MonitoredTrainingSession. TF_CONFIG says which task it is. A ps serves. Each
// run of a worker adds 1 to the variable `w` and to the global step. With --sync=N a run is a gradient of -1 instead,
// and N of them make one such update (SyncReplicasOptimizer). A worker prints
//
//   acked N           after its N-th run
//   end STEP W        after the last one, with the values at that time; only the chief
//
// The exit code is 0, or 1 after an error, which is printed to stderr. The flags have the form --name=value:
//   --last_step  --dir (of checkpoints)  --save_steps  --pause_ms (between runs)  --sync  --chief=1: this task believes
//   that it is the chief  --chief_wait_ms  --profile (a folder for timelines of each run)
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "cohort/cluster/tf_config.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/hooks/profiler_hook.h"
#include "cohort/train/monitored_session.h"
#include "cohort/train/optimizer.h"
#include "cohort/train/sync_replicas_optimizer.h"
#include "tests/chaos/task_flags.h"

namespace cohort::testing {
namespace {

using train::MonitoredSession;

struct MonitoredModel {
  explicit MonitoredModel(const Server& server) {
    const std::string device = "/job:worker/task:" + std::to_string(server.task());
    const DeviceScope scope(graph, train::ReplicaDeviceSetter({.worker_device = device, .cluster = server.cluster()}));
    step = ops::GetOrCreateGlobalStep(graph);
    w = ops::GetVariable(graph, "w", Shape{}, DType::kFloat32, initializers::Zeros());
    gradient = ops::Mul(ops::Const(graph, -1.0f), ops::Const(graph, 1.0f), "gradient");
  }
  Graph graph;
  ops::Variable step, w;
  Output gradient;
};

// Prints the model when the session ends.
class PrintingHook final : public train::SessionRunHook {
 public:
  explicit PrintingHook(const MonitoredModel& model) : model_(model) {}
  void End(Session& session) override {
    const RunResults values = session.Run({model_.step.value(), model_.w.value()});
    std::printf("end %ld %g\n", static_cast<long>(values[0].scalar<int64_t>()),
                static_cast<double>(values[1].scalar<float>()));
  }

 private:
  const MonitoredModel& model_;
};

void Train(const Flags& flags, Server& server) {
  MonitoredModel model(server);
  train::MonitoredTrainingSessionOptions options{.master = server.Target(),
                                                 .is_chief = flags.Integer("chief", server.is_chief() ? 1 : 0) != 0,
                                                 .checkpoint_dir = flags.Text("dir"),
                                                 .save_checkpoint_steps = flags.Integer("save_steps", 5),
                                                 .chief_wait = flags.Ms("chief_wait_ms", 30000),
                                                 .server = &server};
  train::GradientDescentOptimizer sgd(1.0f);
  std::unique_ptr<train::SyncReplicasOptimizer> sync;
  const std::vector<train::GradientAndVariable> gradients = {{Gradient(model.gradient), model.w}};
  Node* run = nullptr;
  if (const auto replicas = static_cast<int>(flags.Integer("sync", 0)); replicas > 0) {
    sync = std::make_unique<train::SyncReplicasOptimizer>(
        sgd, train::SyncReplicasOptions{.replicas_to_aggregate = replicas});
    run = sync->ApplyGradients(gradients, model.step);
    options.hooks.push_back(sync->MakeSessionRunHook(options.is_chief));
  } else {
    run = sgd.ApplyGradients(gradients, model.step);
  }
  options.hooks.push_back(std::make_shared<train::StopAtStepHook>(
      train::StopAtStepHook::Options{.last_step = flags.Integer("last_step", 100)}));
  if (options.is_chief) options.hooks.push_back(std::make_shared<PrintingHook>(model));
  if (const std::string folder = flags.Text("profile"); !folder.empty()) {
    options.hooks.push_back(std::make_shared<train::ProfilerHook>(
        train::ProfilerHook::Options{.every = {.steps = 1}, .output_dir = folder}));
  }
  MonitoredSession session = train::MonitoredTrainingSession(model.graph, options);
  long runs = 0;
  session.RunUntilStop([&](MonitoredSession& running) {
    running.Run(run);
    std::printf("acked %ld\n", ++runs);
    std::this_thread::sleep_for(flags.Ms("pause_ms", 0));  // sets the rate of steps; it waits for nothing
  });
}

void Run(const Flags& flags) {
  RegisterAll();
  const TFConfigClusterResolver resolver;
  ServerOptions options;
  options.heartbeat_interval = std::chrono::milliseconds(300);
  options.silence_limit = std::chrono::milliseconds(60000);
  options.config.intra_op_parallelism_threads = 1;
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1), options);
  if (server.job() == "worker") return Train(flags, server);
  server.Join();
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    cohort::testing::Run(cohort::testing::Flags(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "monitored_task: %s\n", error.what());
    return 1;
  }
}
