// Measures a ClusterCoordinator whose workers and parameter servers are in this process: closures per second with 1 and
// 4 workers (the median of three rounds), and the time of a step of guide-002's Fit. Prints one JSON object on each
// line. Without arguments it measures everything; `closures --workers=N` and `fit` measure one of them. The peer is
// bench/peers/tf_coordinator.py.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cohort/cohort.h"

using namespace cohort;

namespace {

using Clock = std::chrono::steady_clock;

ServerOptions OneThread() {
  ServerOptions options;
  options.config.intra_op_parallelism_threads = 1;
  return options;
}

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Each closure returns a scalar that its worker computes.
void MeasureClosures(int workers, int in_flight) {
  constexpr int kClosures = 4000;
  const distribute::LocalCluster cluster({.workers = workers, .ps = 1, .server = OneThread()});
  const auto strategy = distribute::ParameterServerStrategy(*cluster.resolver(), nullptr, {.server = OneThread()});
  Graph graph;
  distribute::ClusterCoordinator coordinator(strategy, graph, {.closures_in_flight = in_flight});
  const auto function = coordinator.MakeFunction([&](distribute::ClosureContext& worker) {
    return distribute::ClosureNodes{.fetches = {worker.Argument(DType::kFloat32, Shape()) + 1.0f}};
  });
  constexpr int kRounds = 3;
  std::vector<double> rates;
  for (int round = 0; round < 1 + kRounds; ++round) {  // the first one prepares
    const auto begin = Clock::now();
    std::vector<distribute::RemoteValue> values;
    values.reserve(kClosures);
    for (int i = 0; i < kClosures; ++i) values.push_back(coordinator.Schedule(function, {Tensor::Scalar(1.0f)}));
    coordinator.Join();
    const double rate = kClosures / Seconds(Clock::now() - begin);
    if (round > 0) rates.push_back(rate);
    if (values.back().Fetch()[0].scalar<float>() != 2.0f) std::exit(1);
  }
  std::sort(rates.begin(), rates.end());
  std::printf(
      "{\"what\": \"closures\", \"workers\": %d, \"in_flight\": %d, \"per_second\": {\"best\": %.0f, "
      "\"median\": %.0f}}\n",
      workers, in_flight, rates.back(), rates[kRounds / 2]);
}

// guide-002's model, data and cluster. A step of epochs 2 to 5.
void MeasureFit() {
  const distribute::LocalCluster cluster({.workers = 3, .ps = 2, .server = OneThread()});
  const auto strategy = distribute::ParameterServerStrategy(*cluster.resolver(), nullptr, {.server = OneThread()});
  const Tensor x = Tensor::FromValues(std::vector<float>{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(std::vector<float>{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  const auto dataset = data::Dataset::FromTensorSlices({x, y}).Shuffle(10).Repeat().Batch(64);
  keras::Sequential model({keras::Dense(1)}, {.strategy = strategy});
  model.Compile({.optimizer = keras::Adagrad({.learning_rate = 0.05}), .loss = "mse"});
  Clock::time_point second_epoch;
  const auto note = keras::LambdaCallback({.on_epoch_begin = [&](int epoch) {
    if (epoch == 1) second_epoch = Clock::now();
  }});
  model.Fit(dataset, {.epochs = 5, .verbose = 0, .callbacks = {note}, .steps_per_epoch = 10});
  std::printf("{\"what\": \"fit\", \"ms_per_step\": %.3f}\n", Seconds(Clock::now() - second_epoch) * 1000 / 40);
}

}  // namespace

int main(int argc, char** argv) {
  RegisterAll();
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string workers = argc > 2 ? argv[2] : "";
  if (argc == 1) {
    for (const int count : {1, 4}) {
      for (const int in_flight : {1, 4, 16}) MeasureClosures(count, in_flight);
    }
    for (int i = 0; i < 3; ++i) MeasureFit();
  } else if (what == "fit" && argc == 2) {
    MeasureFit();
  } else if (what == "closures" && argc == 3 && (workers == "--workers=1" || workers == "--workers=4")) {
    MeasureClosures(workers.back() - '0', distribute::CoordinatorOptions().closures_in_flight);
  } else {
    std::fprintf(stderr, "usage: coordinator_bench [fit | closures --workers=1 | closures --workers=4]\n");
    return 2;
  }
  return 0;
}
