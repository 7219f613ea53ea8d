// The guide's three trainings of one small network (README.md): a loop by hand, Fit on one device, and Fit on several
// devices or machines with a batch that is as many times larger. With TF_CONFIG the program is one worker of several
// machines; the chief alone writes the checkpoints.
//
//   guide_001_strategies --training=loop
//   guide_001_strategies --training=fit
//   guide_001_strategies --training=mirrored
//   cohort launch --workers=2 -- guide_001_strategies --training=multi_worker
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

// The guide's first snippet: for each epoch, for each batch, one train_step.
int TrainByHand(const std::string& folder) {
  Graph graph;
  const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, kPixels}, "images");
  const Output y = ops::Placeholder(graph, DType::kInt64, Shape{-1}, "labels");
  const Output logits = layers::Dense(x, kClasses);
  const Output loss = ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits(logits, y));
  train::GradientDescentOptimizer optimizer(0.5);
  Node* update = optimizer.Minimize(loss, step);
  Saver saver(graph);
  Node* init = ops::GlobalVariablesInitializer(graph);

  Session session(graph);
  session.Run(init);
  const Callable train_step = session.MakeCallable({x, y}, {loss}, {update});
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto batches = Images().Batch(kBatchSize).MakeIterator();
    int steps = 0;
    float last = 0;
    for (data::Element batch; batches->Next(&batch); ++steps) last = train_step(batch).front().scalar<float>();
    std::printf("epoch %d/%d: %d steps, loss %.4f\n", epoch + 1, kEpochs, steps, static_cast<double>(last));
    if (!folder.empty()) saver.Save(session, folder + "/ckpt", epoch + 1);
  }
  return 0;
}

// The guide's second and third snippets: the same Fit, under a strategy with GLOBAL_BATCH_SIZE.
int TrainWithFit(const std::string& training, const std::string& folder) {
  if (training == "mirrored") config::SetLogicalDevices(config::ListPhysicalDevices("CPU").at(0), 2);
  distribute::StrategyPtr strategy = distribute::OneDevice("/cpu:0");
  if (training == "mirrored") strategy = distribute::Mirrored();
  if (training == "multi_worker") strategy = distribute::MultiWorkerMirrored();
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
  if (strategy->is_chief()) {
    std::printf("%d replicas, GLOBAL_BATCH_SIZE %lld, accuracy %.3f\n", strategy->num_replicas_in_sync(),
                static_cast<long long>(global_batch_size), history["accuracy"].back());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("The trainings of guide 001: a loop by hand, Fit, and Fit under a strategy.");
  std::string training = "loop", folder;
  line.Add("--training", &training, "Which training", examples::OneOf({"loop", "fit", "mirrored", "multi_worker"}));
  line.Add("--checkpoints", &folder, "Folder for a checkpoint after each epoch");
  return examples::Main(argc, argv, line,
                        [&] { return training == "loop" ? TrainByHand(folder) : TrainWithFit(training, folder); });
}
