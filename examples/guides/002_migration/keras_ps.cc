// The second half of guide-002: a Keras model on a ParameterServerStrategy, with a cluster of 3 workers and 2 parameter
// servers in this process, and then the same model on MultiWorkerMirroredStrategy. If TF_CONFIG describes a cluster,
// the program is one of its tasks instead:
//
//   cohort launch --chief --workers=3 --ps=2 -- guide_002_keras_ps
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "examples/task.h"

using namespace cohort;

namespace {

keras::Sequential MakeModel(const distribute::StrategyPtr& strategy) {
  keras::Sequential model({keras::Dense(1)}, {.seed = 1, .strategy = strategy});
  model.Compile({.optimizer = keras::Adagrad({.learning_rate = 0.05}), .loss = "mse"});
  return model;
}

void PrintLogs(const keras::Logs& logs) {
  for (const auto& [name, value] : logs) std::cout << "{'" << name << "': " << value << "}\n";
}

struct Data {
  data::Dataset training, evaluation;
};

Data MakeData() {
  const Tensor features = Tensor::FromValues(std::vector<float>{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor labels = Tensor::FromValues(std::vector<float>{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  const Tensor eval_features = Tensor::FromValues(std::vector<float>{4, 4.5, 5, 5.5, 6, 6.5}, Shape{3, 2});
  const Tensor eval_labels = Tensor::FromValues(std::vector<float>{0.8f, 0.9f, 1}, Shape{3, 1});
  return {data::Dataset::FromTensorSlices({features, labels}).Shuffle(10).Repeat().Batch(64),
          data::Dataset::FromTensorSlices({eval_features, eval_labels}).Repeat().Batch(1)};
}

// Trains and evaluates on the cluster that TF_CONFIG describes. This process is its chief.
void TrainOnParameterServers() {
  const TFConfigClusterResolver cluster_resolver;
  const auto strategy = distribute::ParameterServerStrategy(cluster_resolver);
  const Data data = MakeData();
  keras::Sequential model = MakeModel(strategy);
  model.Fit(data.training, {.epochs = 5, .steps_per_epoch = 10});
  PrintLogs(model.Evaluate(data.evaluation, {.steps = 10}));
  strategy->server()->AnnounceDone();  // so that workers and parameter servers of other processes end
}

void Run() {
  const TFConfigClusterResolver task;
  const std::string type = task.task_type().value_or("");
  if (type == "worker" || type == "ps") {  // one of several processes, as in the real world
    Server(task.cluster_spec(), type, task.task_id().value_or(0)).Join();
    return;
  }
  if (type == "chief") return TrainOnParameterServers();

  // As in the guide: find ports for the chief (the coordinator), workers and parameter servers, and start the servers
  // of all workers and parameter servers in this process.
  ServerOptions worker_config;
  worker_config.config.inter_op_parallelism_threads = 4;
  const distribute::LocalCluster cluster({.workers = 3, .ps = 2, .server = worker_config});
  setenv("TF_CONFIG", cluster.tf_config().c_str(), /*overwrite=*/1);
  TrainOnParameterServers();

  // To clean up the TF_CONFIG that was used for ParameterServerStrategy.
  unsetenv("TF_CONFIG");
  keras::Sequential model = MakeModel(distribute::MultiWorkerMirrored());
  model.Fit(MakeData().training, {.epochs = 5, .verbose = 2, .steps_per_epoch = 10});
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("Trains a Keras model with parameter servers, as the second half of the guide does.");
  line.SetFooter(
      "TF_CONFIG in the environment describes the cluster and this task. Without it, this process starts all tasks.");
  return examples::Main(argc, argv, line, [] {
    RegisterAll();
    Run();
    return 0;
  });
}
