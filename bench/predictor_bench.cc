// What keras::Predictor adds to a call of the bare Callable, and how many calls a second several threads get. The peer
// of each is the Callable of the same network made by hand, in the same process: blocks of calls alternate.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "bench/peers/samples.h"
#include "cohort/cohort.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kIn = 16, kHidden = 32, kOut = 4;
// Short blocks, so that most of them run undisturbed beside other processes.
constexpr int kBlocks = 1501, kCallsInBlock = 200;
constexpr int kCallsOfThread = 40000;

Tensor Batch(int64_t rows) {
  Tensor x(DType::kFloat32, Shape{rows, kIn});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = static_cast<float>(i % 13) * 0.1f - 0.6f;
  return x;
}

// Two dense layers as the model below has them, with the weights of that model.
class Bare {
 public:
  explicit Bare(const std::vector<Tensor>& weights) {
    const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, kIn}, "x");
    std::vector<ops::Variable> variables;
    for (const Tensor& weight : weights) variables.emplace_back(graph_, weight);
    const Output hidden = ops::Relu(ops::BiasAdd(ops::MatMul(x, variables[0]), variables[1]));
    const Output y = ops::BiasAdd(ops::MatMul(hidden, variables[2]), variables[3]);
    session_.Run(ops::GlobalVariablesInitializer(graph_));
    call_ = session_.MakeCallable({x}, {y});
  }
  const Callable& call() const { return *call_; }

 private:
  Graph graph_;
  Session session_{graph_, "", {.intra_op_parallelism_threads = 1}};
  std::optional<Callable> call_;
};

struct Sides {
  keras::Sequential model{{keras::Input(Shape{kIn}), keras::Dense(kHidden, {.activation = "relu"}), keras::Dense(kOut)},
                          {.seed = 1}};
  keras::Predictor predictor{model, {.intra_op_parallelism_threads = 1}};
  Bare bare{model.GetWeights()};
};

template <typename Call>
double MicrosOfCall(const Call& call) {
  const auto begin = Clock::now();
  for (int i = 0; i < kCallsInBlock; ++i) benchmark::DoNotOptimize(call());
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCallsInBlock;
}

// Argument: examples in a batch.
void PredictorCall(benchmark::State& state) {
  const Sides sides;
  const Tensor x = Batch(state.range(0));
  if (sides.predictor.Predict(x).ToVector<float>() != sides.bare.call()({x})[0].ToVector<float>()) {
    state.SkipWithError("the predictor and the bare graph differ");
    return;
  }
  std::vector<double> predictor, bare;
  while (state.KeepRunning()) {
    for (int block = 0; block < kBlocks; ++block) {
      bare.push_back(MicrosOfCall([&] { return sides.bare.call()({x}); }));
      predictor.push_back(MicrosOfCall([&] { return sides.predictor.Predict(x); }));
    }
  }
  state.counters["callable_us"] = Median(bare);
  state.counters["predictor_us"] = Median(predictor);
  state.counters["added_us"] = Median(predictor) - Median(bare);
  state.counters["ratio"] = Median(predictor) / Median(bare);
}
BENCHMARK(PredictorCall)->Arg(1)->Arg(8)->Arg(64)->Iterations(1)->Unit(benchmark::kMillisecond);

// Calls of one example that all threads together get in a second.
template <typename Call>
double CallsPerSecond(int threads, const Call& call) {
  std::vector<std::thread> running;
  const auto begin = Clock::now();
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&call] {
      for (int n = 0; n < kCallsOfThread; ++n) benchmark::DoNotOptimize(call());
    });
  }
  for (std::thread& thread : running) thread.join();
  return 1.0 * kCallsOfThread * threads / std::chrono::duration<double>(Clock::now() - begin).count();
}

// Argument: threads.
void PredictorThreads(benchmark::State& state) {
  const Sides sides;
  const Tensor x = Batch(1);
  const int threads = static_cast<int>(state.range(0));
  std::vector<double> predictor, bare;
  while (state.KeepRunning()) {
    for (int run = 0; run < 7; ++run) {
      bare.push_back(CallsPerSecond(threads, [&] { return sides.bare.call()({x}); }));
      predictor.push_back(CallsPerSecond(threads, [&] { return sides.predictor.Predict(x); }));
    }
  }
  state.counters["callable_per_s"] = Median(bare);
  state.counters["predictor_per_s"] = Median(predictor);
}
BENCHMARK(PredictorThreads)->Arg(1)->Arg(2)->Arg(4)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
