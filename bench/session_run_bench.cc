// Measures a step of a local session on chains of 1 to 1000 small ops. Each step has a new feed x of shape [1, 8], and
// the result is checked. The peers run the same chain: bench/peers/tf_capi_session_run.cc,
// bench/peers/tf_session_run.py.
#include <benchmark/benchmark.h>

#include <chrono>
#include <utility>
#include <vector>

#include "bench/peers/samples.h"
#include "cohort/cohort.h"

namespace cohort {
namespace {

constexpr int64_t kWidth = 8;

// The chain of the peers. Op 0 multiplies by -1, op 1 adds 1, op 2 multiplies by -1, op 3 adds 3, ... (op i adds i %
// 7). The results are exact in float32.
struct Chain {
  Graph graph;
  Output x;
  Output y;
  float sign = 1;
  float offset = 0;  // y = sign * x + offset

  explicit Chain(int num_ops) {
    x = ops::Placeholder(graph, DType::kFloat32, Shape{1, kWidth}, "x");
    y = x;
    for (int i = 0; i < num_ops; ++i) {
      if (i % 2 == 0) {
        y = ops::Mul(y, ops::Const(graph, -1.0f));
        sign = -sign;
        offset = -offset;
      } else {
        const float term = static_cast<float>(i % 7);
        y = ops::Add(y, ops::Const(graph, term));
        offset += term;
      }
    }
  }
};

Tensor NewFeed(int64_t round) {
  Tensor feed(DType::kFloat32, Shape{1, kWidth});
  for (int64_t i = 0; i < kWidth; ++i) feed.data<float>()[i] = static_cast<float>(i + round % 64);
  return feed;
}

void Check(benchmark::State& state, const Chain& chain, const Tensor& result, int64_t round) {
  for (int64_t i = 0; i < kWidth; ++i) {
    const float expected = chain.sign * static_cast<float>(i + round % 64) + chain.offset;
    if (result.data<float>()[i] != expected) state.SkipWithError("wrong result");
  }
}

// Runs `step` on a new feed each time. As the peers' programs do, it times each run alone, which gives the counter
// us_median. The time that Google Benchmark reports includes the check of the result.
template <typename Step>
void Measure(benchmark::State& state, const Chain& chain, const Step& step) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> micros;
  int64_t round = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    const std::vector<Tensor> result = step(NewFeed(round));
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    Check(state, chain, result[0], round++);
  }
  state.counters["us_median"] = Median(std::move(micros));
}

void BM_SessionRun(benchmark::State& state) {
  const Chain chain(static_cast<int>(state.range(0)));
  Session session(chain.graph);
  Measure(state, chain, [&](const Tensor& feed) { return session.Run({{chain.x, feed}}, {chain.y}); });
}
BENCHMARK(BM_SessionRun)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_Callable(benchmark::State& state) {
  const Chain chain(static_cast<int>(state.range(0)));
  Session session(chain.graph);
  const Callable run = session.MakeCallable({chain.x}, {chain.y});
  Measure(state, chain, [&](const Tensor& feed) { return run({feed}); });
}
BENCHMARK(BM_Callable)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
