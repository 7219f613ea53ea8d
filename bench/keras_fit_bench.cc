// Measures the time that Fit adds to a training step: for batches of shuffled images, the loop, losses and metrics. It
// is compared with the bare step of the same network made by hand. Also measures how long Fit waits for batches
// (History). The figures are medians of runs that alternate in one process.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "bench/guide_network.h"
#include "bench/peers/samples.h"
#include "cohort/cohort.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kImages = 8192;
constexpr int kRuns = 7;

double Seconds(const std::function<void()>& run) {
  const auto begin = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A perceptron with one hidden layer, SGD and accuracy, made by hand.
class Bare {
 public:
  Bare(const data::ImageDataset& images, int64_t batch, int64_t hidden) : batch_(batch) {
    pixels_ = Tensor(DType::kFloat32, Shape{batch, 784});
    std::copy_n(images.train_images.data<uint8_t>(), batch * 784, pixels_.data<float>());
    labels_ = Tensor(DType::kInt64, Shape{batch});
    std::copy_n(images.train_labels.data<uint8_t>(), batch, labels_.data<int64_t>());
    const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 784});
    const Output y = ops::Placeholder(graph_, DType::kInt64, Shape{-1});
    const Output logits = Dense(ops::Relu(Dense(x, 784, hidden)), hidden, 10);
    const Output loss = ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = y, .logits = logits}));
    Node* train = train::GradientDescentOptimizer(0.0001).Minimize(loss);
    const ops::Variable correct(graph_, Tensor::Scalar(0.0), {.trainable = false});
    Node* count = correct.AssignAdd(
        ops::Cast(ops::Sum(ops::Cast(ops::Equal(ops::ArgMax(logits, 1), y), DType::kInt32)), DType::kFloat64));
    session_.Run(ops::GlobalVariablesInitializer(graph_));
    step_ = session_.MakeCallable({x, y}, {loss}, {train, count});
  }

  void Epoch() const {
    for (int64_t i = 0; i < kImages / batch_; ++i) benchmark::DoNotOptimize((*step_)({pixels_, labels_}));
  }

 private:
  Output Dense(Output x, int64_t in, int64_t out) {
    const ops::Variable kernel(graph_, Shape{in, out}, initializers::GlorotUniform());
    const ops::Variable bias(graph_, Shape{out}, initializers::Zeros());
    return ops::BiasAdd(ops::MatMul(x, kernel), bias);
  }

  const int64_t batch_;
  Graph graph_;
  Session session_{graph_};
  Tensor pixels_, labels_;
  std::optional<Callable> step_;
};

// Compares runs of `steps` steps, by turns. Each function does all steps of a run.
void Compare(benchmark::State& state, int64_t steps, int64_t batch, const std::function<void()>& bare,
             const std::function<keras::History()>& fit) {
  fit();
  bare();
  std::vector<double> fits, bares, waits;
  while (state.KeepRunning()) {
    for (int i = 0; i < kRuns; ++i) {
      bares.push_back(Seconds(bare));
      double waited = 0;
      fits.push_back(Seconds([&] { waited = std::chrono::duration<double>(fit().data_waits().at(0)).count(); }));
      waits.push_back(waited / fits.back());
    }
  }
  const auto count = static_cast<double>(steps);
  state.counters["bare_ms"] = 1e3 * Median(bares) / count;
  state.counters["fit_ms"] = 1e3 * Median(fits) / count;
  state.counters["of_bare"] = Median(bares) / Median(fits);
  state.counters["outside_percent"] = 100 * (1 - Median(bares) / Median(fits));
  state.counters["data_wait_percent"] = 100 * Median(waits);
  state.counters["images_per_s"] = count * static_cast<double>(batch) / Median(fits);
}

// The arguments are: images in one step, hidden units.
void Fit(benchmark::State& state) {
  const int64_t batch = state.range(0), hidden = state.range(1);
  const data::ImageDataset images = data::GeneratedImages(1, kImages, 1);
  const Bare bare(images, batch, hidden);
  keras::Sequential model(
      {keras::Flatten(), keras::Dense(hidden, {.activation = "relu"}), keras::Dense(10, {.activation = "softmax"})});
  model.Compile({.optimizer = keras::SGD({.learning_rate = 0.0001}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  Compare(
      state, kImages / batch, batch, [&] { bare.Epoch(); },
      [&] { return model.Fit(images.train_images, images.train_labels, {.batch_size = batch, .verbose = 0}); });
}

// Measures the network of examples/fashion_mnist, written as in that program. The arguments are: images in one step,
// threads.
void FitGuideNetwork(benchmark::State& state) {
  constexpr int kSteps = 4;
  const int64_t batch = state.range(0);
  const int threads = static_cast<int>(state.range(1));
  const data::ImageDataset images = data::GeneratedImages(1, kSteps * batch, 1);
  GuideNetwork network(batch, DType::kFloat32);
  const GuideNetwork::Run bare(network, threads);
  keras::Sequential model = KerasGuideNetwork({.session = {.intra_op_parallelism_threads = threads}});
  model.Compile({.optimizer = keras::SGD({.learning_rate = 1e-6}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  const auto steps = [&] {
    for (int i = 0; i < kSteps; ++i) benchmark::DoNotOptimize(bare.Step());
  };
  Compare(state, kSteps, batch, steps,
          [&] { return model.Fit(images.train_images, images.train_labels, {.batch_size = batch, .verbose = 0}); });
}

BENCHMARK(Fit)->Args({64, 128})->Args({256, 128})->Args({256, 1024})->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(FitGuideNetwork)->ArgsProduct({{64, 256}, {1, 2}})->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
