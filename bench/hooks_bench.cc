// Measures what the usual hooks of a MonitoredSession add to a step: a local graph of 10 small ops and a global step is
// run by Session::Run, by a MonitoredSession without hooks, and by one with StopAtStepHook, NanTensorHook,
// StepCounterHook and CheckpointSaverHook. The hooks do not save or log during the measured steps.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/peers/samples.h"
#include "cohort/cohort.h"

namespace cohort {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kNever = int64_t{1} << 40;  // a step that no run comes to

// y = 10 small ops of x, and a step that each run counts.
struct Model {
  Graph graph;
  Output x, loss;
  Node* count = nullptr;

  Model() {
    x = ops::Placeholder(graph, DType::kFloat32, Shape{1, kWidth}, "x");
    Output y = x;
    for (int i = 0; i < 9; ++i) y = i % 2 == 0 ? y * -1.0f : y + static_cast<float>(i % 7);
    loss = ops::Mean(y);
    count = ops::GetOrCreateGlobalStep(graph).AssignAdd(1);
  }
};

// A folder for checkpoints, which is removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "hooks_bench.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw InternalError("[hooks_bench] cannot make the folder " + name);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Times each step alone, which gives the counter us_median, and checks its result.
template <typename Step>
void Measure(benchmark::State& state, const Step& step) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> micros;
  float round = 0;
  for (auto _ : state) {
    const Tensor feed = Tensor::FromValues(std::vector<float>(kWidth, round), Shape{1, kWidth});
    const auto start = Clock::now();
    const RunResults result = step(feed);
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    // Ops 0, 2, 4, 6 and 8 change the sign, and the others add 1, 3, 5 and 0: the sum is 3.
    if (result.size() != 1 || result.front().scalar<float>() != -round + 3) state.SkipWithError("wrong result");
    round = round < 64 ? round + 1 : 0;
  }
  state.counters["us_median"] = Median(std::move(micros));
}

void BM_SessionRun(benchmark::State& state) {
  Model model;
  Session session(model.graph);
  session.Run(ops::GlobalVariablesInitializer(model.graph));
  Measure(state, [&](const Tensor& feed) { return session.Run({{model.x, feed}}, {model.loss}, {model.count}); });
}
BENCHMARK(BM_SessionRun)->Unit(benchmark::kMicrosecond);

void MeasureMonitored(benchmark::State& state, Model& model,
                      std::vector<std::shared_ptr<train::SessionRunHook>> hooks) {
  train::MonitoredSession session = train::MonitoredTrainingSession(model.graph, {.hooks = std::move(hooks)});
  Measure(state, [&](const Tensor& feed) { return session.Run({{model.x, feed}}, {model.loss}, {model.count}); });
  session.Close();
}

void BM_NoHooks(benchmark::State& state) {
  Model model;
  MeasureMonitored(state, model, {});
}
BENCHMARK(BM_NoHooks)->Unit(benchmark::kMicrosecond);

void BM_FourHooks(benchmark::State& state) {
  Model model;
  const Folder folder;
  MeasureMonitored(
      state, model,
      {std::make_shared<train::StopAtStepHook>(train::StopAtStepHook::Options{.last_step = kNever}),
       std::make_shared<train::NanTensorHook>(model.loss),
       std::make_shared<train::StepCounterHook>(train::StepCounterHook::Options{.every = {.steps = kNever}}),
       std::make_shared<train::CheckpointSaverHook>(train::CheckpointSaverHook::Options{
           .checkpoint_dir = folder.path(), .every = {.interval = std::chrono::minutes(10)}})});
}
BENCHMARK(BM_FourHooks)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cohort

BENCHMARK_MAIN();
