// A step of a local session on chains of 1 to 1000 small ops: x of shape [1, 8] is fed anew, the result is checked.
// The peers run the same chain: bench/peers/tf_capi_session_run.cc, bench/peers/tf_session_run.py.
#include <benchmark/benchmark.h>

#include <cmath>

#include "cohort/cohort.h"

namespace cohort {
namespace {

constexpr int64_t kWidth = 8;

// y = ((x * a) + b) * a ... : alternating products and sums with constants that keep the values near 1.
struct Chain {
  Graph graph;
  Output x;
  Output y;

  explicit Chain(int num_ops) {
    x = ops::Placeholder(graph, DType::kFloat32, Shape{1, kWidth}, "x");
    const Output a = ops::Const(graph, 0.5f, "a");
    const Output b = ops::Const(graph, 0.5f, "b");
    y = x;
    for (int i = 0; i < num_ops; ++i) y = i % 2 == 0 ? ops::Mul(y, a) : ops::Add(y, b);
  }

  static float Expected(float value, int num_ops) {
    for (int i = 0; i < num_ops; ++i) value = i % 2 == 0 ? value * 0.5f : value + 0.5f;
    return value;
  }
};

Tensor NewFeed(int64_t round) {
  Tensor feed(DType::kFloat32, Shape{1, kWidth});
  for (int64_t i = 0; i < kWidth; ++i) feed.data<float>()[i] = static_cast<float>((round + i) % 97);
  return feed;
}

void Check(benchmark::State& state, const Tensor& result, int64_t round, int num_ops) {
  const float expected = Chain::Expected(static_cast<float>(round % 97), num_ops);
  if (std::fabs(result.data<float>()[0] - expected) > 1e-5f) state.SkipWithError("wrong result");
}

void BM_SessionRun(benchmark::State& state) {
  const int num_ops = static_cast<int>(state.range(0));
  Chain chain(num_ops);
  Session session(chain.graph);
  int64_t round = 0;
  for (auto _ : state) {
    const std::vector<Tensor> result = session.Run({{chain.x, NewFeed(round)}}, {chain.y});
    Check(state, result[0], round++, num_ops);
  }
}
BENCHMARK(BM_SessionRun)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_Callable(benchmark::State& state) {
  const int num_ops = static_cast<int>(state.range(0));
  Chain chain(num_ops);
  Session session(chain.graph);
  const Callable run = session.MakeCallable({chain.x}, {chain.y});
  int64_t round = 0;
  for (auto _ : state) {
    const std::vector<Tensor> result = run({NewFeed(round)});
    Check(state, result[0], round++, num_ops);
  }
}
BENCHMARK(BM_Callable)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
