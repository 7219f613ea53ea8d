// The guide's three trainings of one small network (README.md): a loop by hand, Fit on one device, and Fit on several
// devices or machines with a batch that is as many times larger. With TF_CONFIG the program is one worker of several
// machines; the chief alone writes the checkpoints.
//
//   guide_001_strategies --training=loop            or mirrored_loop, with two devices
//   guide_001_strategies --training=fit
//   guide_001_strategies --training=mirrored
//   cohort launch --workers=2 -- guide_001_strategies --training=multi_worker         or multi_worker_loop
#include <cstdio>
#include <string>

#include "cohort/cohort.h"
#include "examples/task.h"

namespace {

using namespace cohort;

constexpr int kEpochs = 3;
constexpr int64_t kImages = 100, kBatchSize = 20, kPixels = 16, kClasses = 2;

// 100 images of 16 pixels, as in the guide's arithmetic. An image is of class 1 if its first half is brighter.
data::Dataset Images() {
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < kImages; ++i) {
    const bool first_half_is_bright = i % 3 == 0;
    for (int64_t p = 0; p < kPixels; ++p) {
      const bool bright = (p < kPixels / 2) == first_half_is_bright;
      pixels.push_back((bright ? 0.8f : 0.2f) + 0.01f * static_cast<float>((7 * i + 3 * p) % 11));
    }
    labels.push_back(first_half_is_bright ? 1 : 0);
  }
  return data::Dataset::FromTensorSlices({Tensor::FromValues(pixels, Shape{kImages, kPixels}), Tensor::Vector(labels)});
}

// Under a strategy with several replicas, and in the guide's words: with several GPUs or machines.
distribute::StrategyPtr MakeStrategy(const std::string& training) {
  if (training.starts_with("multi_worker")) return distribute::MultiWorkerMirrored();
  if (!training.starts_with("mirrored")) return distribute::OneDevice("/cpu:0");
  config::SetLogicalDevices(config::ListPhysicalDevices("CPU").at(0), 2);
  return distribute::Mirrored();
}

// The guide's first snippet: for each epoch, for each batch, one train_step. A batch has GLOBAL_BATCH_SIZE images,
// which the replicas divide among each other.
int TrainByHand(const std::string& training, const std::string& folder) {
  const distribute::StrategyPtr strategy = MakeStrategy(training);
  const int64_t global_batch_size = kBatchSize * strategy->num_replicas_in_sync();
  const auto dataset = distribute::DistributeDataset(strategy, Images().Batch(global_batch_size));

  Graph graph;
  ops::Variable w, b;
  {
    const auto scope = strategy->Scope(graph);
    w = ops::GetVariable(graph, "w", Shape{kPixels, kClasses});
    b = ops::GetVariable(graph, "b", Shape{kClasses}, DType::kFloat32, initializers::Zeros());
  }
  const distribute::ReplicaInputs inputs(graph, dataset);
  const auto losses = strategy->Run(graph, [&](distribute::ReplicaContext& replica) {
    const Output images = inputs.Of(replica)[0], labels = inputs.Of(replica)[1];
    const Output logits = ops::MatMul(images, replica.Local(w)) + replica.Local(b);
    return replica.MeanOfGlobalBatch(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits}));
  });
  train::GradientDescentOptimizer optimizer(0.5);
  Node* update = strategy->Minimize(optimizer, losses);
  const Output loss = strategy->Reduce(distribute::Reduction::kSum, losses);
  Saver saver(graph);
  Node* init = ops::GlobalVariablesInitializer(graph);

  const auto session = strategy->OpenSession(graph);
  const auto train_step = inputs.MakeStep(*session, {loss}, {update});
  session->Run(init);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto batches = dataset.MakeIterator({.epoch = epoch});
    int steps = 0;
    float last = 0;
    for (distribute::PerReplica<std::vector<Tensor>> batch; batches->Next(&batch); ++steps) {
      last = train_step(batch)[loss].scalar<float>();
    }
    if (!strategy->is_chief()) continue;  // the weights are equal on all workers, so one writes
    std::printf("epoch %d/%d: %d steps of %lld images, loss %.4f\n", epoch + 1, kEpochs, steps,
                static_cast<long long>(global_batch_size), static_cast<double>(last));
    if (!folder.empty()) saver.Save(*session, folder + "/ckpt", epoch + 1);
  }
  return 0;
}

// The guide's second and third snippets: the same Fit, under a strategy with GLOBAL_BATCH_SIZE.
int TrainWithFit(const std::string& training, const std::string& folder) {
  const distribute::StrategyPtr strategy = MakeStrategy(training);
  const int64_t global_batch_size = kBatchSize * strategy->num_replicas_in_sync();

  keras::Sequential model({keras::Input(Shape{kPixels}), keras::Dense(kClasses, {.activation = "softmax"})},
                          {.strategy = strategy});
  model.Compile({.optimizer = keras::SGD({.learning_rate = 0.5}),
                 .loss = keras::SparseCategoricalCrossentropy(),
                 .metrics = {"accuracy"}});
  keras::FitOptions options;
  options.epochs = kEpochs;
  options.verbose = strategy->is_chief() ? 2 : 0;
  // All workers call the callback. The weights are equal on all of them, and only the chief writes.
  if (!folder.empty()) options.callbacks.push_back(keras::ModelCheckpoint({.filepath = folder + "/{epoch}.keras"}));
  const keras::History history = model.Fit(Images().Shuffle(kImages, 1).Batch(global_batch_size), options);
  if (strategy->is_chief() && !history.interrupted()) {
    std::printf("%d replicas, GLOBAL_BATCH_SIZE %lld, accuracy %.3f\n", strategy->num_replicas_in_sync(),
                static_cast<long long>(global_batch_size), history["accuracy"].back());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("The trainings of guide 001: a loop by hand, Fit, and Fit under a strategy.");
  std::string training = "loop", folder;
  line.Add("--training", &training, "Which training",
           examples::OneOf({"loop", "mirrored_loop", "multi_worker_loop", "fit", "mirrored", "multi_worker"}));
  line.Add("--checkpoints", &folder, "Folder for a checkpoint after each epoch");
  return examples::Main(argc, argv, line, [&] {
    return training.ends_with("loop") ? TrainByHand(training, folder) : TrainWithFit(training, folder);
  });
}
