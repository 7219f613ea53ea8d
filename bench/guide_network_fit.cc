// Trains the guide network with Fit under a strategy, on images in memory. Each process prints one JSON object with the
// median time of single steps after a warm-up. `cohort launch` starts several processes, or they are started by hand
// with TF_CONFIG; see kUsage.
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/guide_network.h"
#include "bench/peers/samples.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr char kUsage[] =
    "usage: guide_network_fit [--strategy=one_device|mirrored|multi_worker] [FLAGS]\n"
    "       cohort launch --workers=2 -- guide_network_fit --strategy=multi_worker [FLAGS]\n"
    "  --batch=N           images in one step of all replicas together (128)\n"
    "  --replicas=N        replicas with mirrored, on logical CPUs of this process (2)\n"
    "  --threads=N         threads of each device (1)\n"
    "  --steps=N           steps to measure (12)\n"
    "  --warmup=N          steps before them that are not measured (3)\n"
    "  --bytes_per_pack=N  bytes of gradients that travel together (chosen by the strategy)\n"
    "  --pin               run on one core: task 0 on the first core, task 1 on the second core, ...\n"
    "  --allow_insecure    listen beyond this machine, although there is no TLS\n";

struct Flags {
  std::string strategy = "one_device";
  int64_t batch = 128;
  int64_t replicas = 2;
  int64_t threads = 1;
  int64_t steps = 12;
  int64_t warmup = 3;
  int64_t bytes_per_pack = 0;
  bool pin = false;
  bool allow_insecure = false;
};

// Reads one flag. Returns false if there is no such flag or its value is invalid.
bool Take(std::string_view argument, Flags* flags) {
  if (argument == "--pin") return flags->pin = true;
  if (argument == "--allow_insecure") return flags->allow_insecure = true;
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = argument.substr(0, equals);
  const std::string value(argument.substr(equals + 1));
  if (name == "--strategy") {
    flags->strategy = value;
    return value == "one_device" || value == "mirrored" || value == "multi_worker";
  }
  const std::pair<std::string_view, int64_t*> numbers[] = {
      {"--batch", &flags->batch}, {"--replicas", &flags->replicas}, {"--threads", &flags->threads},
      {"--steps", &flags->steps}, {"--warmup", &flags->warmup},     {"--bytes_per_pack", &flags->bytes_per_pack}};
  for (const auto& [known, number] : numbers) {
    if (name == known) return (*number = std::atoll(value.c_str())) > 0;
  }
  return false;
}

// Pins this thread to one core, by the index of the task among the cores that this process may use. Threads that it
// makes later are pinned there, too.
void PinToCoreOfTask() {
  const int task = TFConfigClusterResolver().task_id().value_or(0);
  cpu_set_t usable, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0)
    throw InternalError("[guide_network_fit] cannot ask which cores this process may use");
  int left = task;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || left-- > 0) continue;
    CPU_SET(core, &own);
    if (sched_setaffinity(0, sizeof(own), &own) == 0) return;
    break;
  }
  throw InvalidArgumentError(
      StrCat("[guide_network_fit] expected a core for task ", task, "; got ", CPU_COUNT(&usable), " cores"));
}

distribute::StrategyPtr MakeStrategy(const Flags& flags) {
  if (flags.strategy == "multi_worker") {
    return distribute::MultiWorkerMirrored(
        {.communication = {.bytes_per_pack = flags.bytes_per_pack},
         .replicas_per_worker = 1,
         .server = {.config = {.intra_op_parallelism_threads = static_cast<int>(flags.threads)},
                    .allow_insecure = flags.allow_insecure}});
  }
  if (flags.strategy == "mirrored") return distribute::MirroredOnCpus(static_cast<int>(flags.replicas));
  return distribute::OneDevice("/cpu:0");
}

// Records the time of the end of each batch, and its loss.
class StepClock final : public keras::Callback {
 public:
  using Clock = std::chrono::steady_clock;
  void OnTrainBatchEnd(int64_t batch, const keras::BatchLogs& logs) override {
    ends_.push_back(Clock::now());
    losses_.push_back(logs.loss());
  }
  // Returns the median of the steps after the first `warmup` steps.
  double MedianMs(int64_t warmup) const {
    std::vector<double> times;
    for (size_t i = static_cast<size_t>(warmup); i < ends_.size(); ++i)
      times.push_back(std::chrono::duration<double, std::milli>(ends_[i] - ends_[i - 1]).count());
    return Median(std::move(times));
  }
  // Checks that the loss has fallen.
  void Check() const {
    const auto middle = losses_.begin() + static_cast<std::ptrdiff_t>(losses_.size() / 2);
    const double first = std::accumulate(losses_.begin(), middle, 0.0) / static_cast<double>(middle - losses_.begin());
    const double second = std::accumulate(middle, losses_.end(), 0.0) / static_cast<double>(losses_.end() - middle);
    if (!(second < first))
      throw InternalError(StrCat("[guide_network_fit] expected a loss that falls; got ", first,
                                 " in the first half of the steps and ", second, " in the second one"));
  }

 private:
  std::vector<Clock::time_point> ends_;
  std::vector<double> losses_;
};

void Run(const Flags& flags) {
  if (flags.pin) PinToCoreOfTask();
  const int64_t count = (flags.warmup + flags.steps) * flags.batch;
  const data::ImageDataset images = data::GeneratedImages(1, count, 1);
  data::StandardScaler scaler;
  scaler.Fit(images.train_images);
  const Tensor pixels = scaler.Transform(images.train_images).Reshaped(Shape{count, 28, 28, 1});
  const distribute::StrategyPtr strategy = MakeStrategy(flags);
  keras::Sequential model = KerasGuideNetwork(
      {.session = {.intra_op_parallelism_threads = static_cast<int>(flags.threads)}, .strategy = strategy});
  model.Compile({.optimizer = keras::SGD({.learning_rate = 0.01}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  const auto clock = std::make_shared<StepClock>();
  const auto begin = StepClock::Clock::now();
  const keras::History history =
      model.Fit(pixels, images.train_labels, {.batch_size = flags.batch, .verbose = 0, .callbacks = {clock}});
  const double seconds = std::chrono::duration<double>(StepClock::Clock::now() - begin).count();
  clock->Check();
  const double ms = clock->MedianMs(flags.warmup);
  std::printf(
      "{\"bench\":\"guide_network_fit\",\"strategy\":\"%s\",\"worker\":%d,\"replicas\":%d,\"batch\":%lld,"
      "\"threads\":%lld,\"step_ms\":%.2f,\"images_per_s\":%.1f,\"data_wait_percent\":%.3f,\"gradient_bytes\":%lld}\n",
      flags.strategy.c_str(), strategy->worker(), strategy->num_replicas_in_sync(), static_cast<long long>(flags.batch),
      static_cast<long long>(flags.threads), ms, 1e3 * static_cast<double>(flags.batch) / ms,
      100 * history.data_wait_seconds().at(0) / seconds,
      static_cast<long long>(model.CountParams() * static_cast<int64_t>(sizeof(float))));
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  cohort::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::cout << cohort::kUsage;
      return 0;
    }
    if (cohort::Take(argument, &flags)) continue;
    std::cerr << "guide_network_fit: wrong argument '" << argument << "'\n" << cohort::kUsage;
    return 2;
  }
  try {
    cohort::Run(flags);
    return 0;
  } catch (const cohort::Error& e) {
    std::cerr << "guide_network_fit: " << e.what() << "\n";
    return 1;
  }
}
