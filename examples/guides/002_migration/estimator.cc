// The first half of the guide: an Estimator, trained and evaluated by TrainAndEvaluate. README.md compares this program
// with the guide's. Alone it trains and evaluates in this process; with TF_CONFIG it does the work of its task.
#include <cstdio>
#include <cstdlib>

#include "examples/task.h"

using namespace cohort;

namespace {

const std::vector<float> kFeatures{1, 1.5f, 2, 2.5f, 3, 3.5f}, kLabels{0.3f, 0.5f, 0.7f};
const std::vector<float> kEvalFeatures{4, 4.5f, 5, 5.5f, 6, 6.5f}, kEvalLabels{0.8f, 0.9f, 1};

data::Dataset Batches(const std::vector<float>& features, const std::vector<float>& labels) {
  return data::Dataset::FromTensorSlices(
             {Tensor::FromValues(features, Shape{3, 2}), Tensor::FromValues(labels, Shape{3, 1})})
      .Batch(1);
}

estimator::EstimatorSpec ModelFn(const estimator::ModelFnArgs& args) {
  const Output logits = layers::Dense(args.features[0], 1);
  const Output loss = losses::MeanSquaredError(args.labels[0], logits);
  train::AdagradOptimizer optimizer(0.05);
  Node* train_op = optimizer.Minimize(loss, *ops::GetGlobalStep(args.graph));
  return {.mode = args.mode, .loss = loss, .train_op = train_op};
}

// The guide's description of a cluster.
const char* const kCluster = R"({
  "cluster": {
    "chief": ["localhost:11111"],
    "worker": ["localhost:12345", "localhost:23456", "localhost:21212"],
    "ps": ["localhost:12121", "localhost:13131"]
  },
  "task": {"type": "chief", "index": 0}
})";

// The guide sets TF_CONFIG and deletes it again, so that one process trains. A task of a real cluster keeps its own.
void ShowTFConfig() {
  if (std::getenv("TF_CONFIG") != nullptr) return;
  setenv("TF_CONFIG", kCluster, 1);
  const TFConfigClusterResolver resolver;
  std::printf("TF_CONFIG: %s, task %s %d\n", resolver.cluster_spec().ToString().c_str(), resolver.task_type()->c_str(),
              *resolver.task_id());
  unsetenv("TF_CONFIG");
}

int Run() {
  ShowTFConfig();
  const char* model_dir = std::getenv("MODEL_DIR");  // of all tasks, if there are several
  estimator::Estimator model =
      model_dir == nullptr ? estimator::Estimator(ModelFn) : estimator::Estimator(ModelFn, {.model_dir = model_dir});
  const auto result = estimator::TrainAndEvaluate(
      model, {.input_fn = [] { return Batches(kFeatures, kLabels); }},
      {.input_fn = [] { return Batches(kEvalFeatures, kEvalLabels); }, .start_delay = std::chrono::seconds(0)});
  if (!result) return 0;  // a task that does not evaluate
  std::printf("({'loss': %.8g, 'global_step': %.0f}, [])\n", result->first.at("loss"), result->first.at("global_step"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("Trains and evaluates an Estimator, as the first half of the guide does.");
  line.SetFooter(
      "Variables of the environment: TF_CONFIG describes the cluster and this task; without it, this process does "
      "all.\n"
      "MODEL_DIR is the folder of the checkpoints; without it, a new one in the folder for temporary files.");
  return examples::Main(argc, argv, line, Run);
}
