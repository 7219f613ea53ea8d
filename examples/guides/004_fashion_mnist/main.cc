// The four programs of guide-004 (README.md): one network on Fashion-MNIST, trained by one device, by two devices of
// one machine, and by two machines. Where the guide types `python NAME.py`, type:
//
//   guide_004_fashion_mnist --program=baseline
//   guide_004_fashion_mnist --program=single_machine_multi_gpu
//   guide_004_fashion_mnist --program=two_machine_worker01        on 172.17.0.2
//   guide_004_fashion_mnist --program=two_machine_worker02        on 172.17.0.3
//
// The order is the guide's: devices (UseDevices), TF_CONFIG and strategy (MakeStrategy), images, dataset, model, Fit.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <string>

#include "cohort/cohort.h"
#include "examples/devices.h"
#include "examples/images.h"
#include "examples/separable_network.h"
#include "examples/task.h"

namespace {

using namespace cohort;

constexpr int kReplicas = 2;  // the guide's machine has two GPUs

struct Flags {
  std::string program = "baseline";
  std::string worker_hosts = "172.17.0.2:12345,172.17.0.3:23456";
  std::string data_dir;
  int epochs = 10;
  int64_t batch_size = 256;  // of one device; the two machines share a batch of this size
  int64_t steps_per_epoch = 0;
  int64_t max_images = 0;
  int threads = 0;
  bool keras_fans = false;
  std::string curves;
  std::string too_late;
  int visible_gpu = -1;
  bool step_times = false;
};

bool IsMirrored(const Flags& flags) { return flags.program == "single_machine_multi_gpu"; }
bool HasTwoMachines(const Flags& flags) { return flags.program.starts_with("two_machine"); }

// The guide's "set gpu visible" and "set gpu self_growth". Without GPUs, logical CPUs stand for the two of the guide's
// machine.
void UseDevices(const Flags& flags) {
  // The guide's programs of the two machines begin with this line. A value of the caller's is kept, for two tasks on
  // one machine.
  if (HasTwoMachines(flags)) setenv("CUDA_VISIBLE_DEVICES", "0", /*overwrite=*/0);
  const config::PhysicalDeviceList gpus = config::ListPhysicalDevices("GPU");
  // The guide's baseline.py trains on gpus[1]. On a machine with one GPU it would fail; here it trains on that one.
  int visible = flags.visible_gpu;
  if (visible < 0 && flags.program == "baseline" && gpus.size() > 1) visible = 1;
  if (visible >= 0) config::SetVisibleDevices({gpus[static_cast<size_t>(visible)]}, "GPU");
  for (const config::PhysicalDevice& gpu : gpus) config::SetMemoryGrowth(gpu, true);
  if (IsMirrored(flags) && gpus.empty()) {
    config::SetLogicalDevices(config::ListPhysicalDevices("CPU").at(0), kReplicas);
  }
  if (HasTwoMachines(flags)) return;  // there the guide does not print the numbers
  std::printf("the num of gpu %zu\n", gpus.size());
  std::printf("the num of logical gpu %zu\n", config::ListLogicalDevices("GPU").size());
}

// What the guide tries first, and what fails there as here: settings after the strategy.
void SetTooLate(const std::string& setting) {
  const std::vector<config::PhysicalDevice> cpus = config::ListPhysicalDevices("CPU");
  if (setting == "visible") config::SetVisibleDevices(cpus, "CPU");
  if (setting == "growth") config::SetMemoryGrowth(cpus.at(0), true);
}

distribute::StrategyPtr MakeStrategy(const Flags& flags) {
  if (IsMirrored(flags)) return distribute::Mirrored();
  if (!HasTwoMachines(flags)) return distribute::OneDevice(examples::OneTrainingDevice());
  const std::string index = flags.program == "two_machine_worker01" ? "0" : "1";
  const std::string hosts = std::regex_replace(flags.worker_hosts, std::regex(","), R"(", ")");
  const std::string cluster = R"({"worker": [")" + hosts + R"("]})";
  const std::string config = R"({"cluster": )" + cluster + R"(, "task": {"type": "worker", "index": )" + index + "}}";
  setenv("TF_CONFIG", config.c_str(), 1);
  return distribute::MultiWorkerMirrored({.server = {.config = {.intra_op_parallelism_threads = flags.threads}}});
}

data::Dataset MakeDataset(const examples::ImagePart& part, int epochs, int64_t batch_size) {
  return data::Dataset::FromTensorSlices({part.images, part.labels})
      .Shuffle(10000)
      .Repeat(epochs)
      .Batch(batch_size)
      .Prefetch(50);
}

// Prints the time of a step in each epoch, for the README's tables. The bar rounds times above 1 s to seconds.
keras::CallbackPtr PrintStepTimes(int64_t steps) {
  using Clock = std::chrono::steady_clock;
  const auto begin = std::make_shared<Clock::time_point>();
  return keras::LambdaCallback({.on_epoch_begin = [=](int) { *begin = Clock::now(); },
                                .on_epoch_end =
                                    [=](int epoch, const keras::Logs&) {
                                      const std::chrono::duration<double, std::milli> time = Clock::now() - *begin;
                                      std::printf("epoch %d: %.1f ms a step\n", epoch + 1,
                                                  time.count() / static_cast<double>(steps));
                                    }});
}

int Run(const Flags& flags) {
  UseDevices(flags);
  const distribute::StrategyPtr strategy = MakeStrategy(flags);
  SetTooLate(flags.too_late);

  const examples::ScaledImages images =
      examples::LoadScaledImages(flags.data_dir, flags.max_images, strategy->is_chief());
  const int64_t batch_size = flags.batch_size * (IsMirrored(flags) ? strategy->num_replicas_in_sync() : 1);
  constexpr int kEpochs = 100;
  const data::Dataset train = MakeDataset(images.train, kEpochs, batch_size);

  keras::Sequential model =
      examples::SeparableNetwork(flags.keras_fans ? keras::DepthwiseFans::kKeras : keras::DepthwiseFans::kTrue,
                                 {.session = {.intra_op_parallelism_threads = flags.threads}, .strategy = strategy});
  model.Compile({.optimizer = keras::SGD(), .loss = keras::SparseCategoricalCrossentropy(), .metrics = {"accuracy"}});
  model.Summary();

  keras::FitOptions options;
  options.epochs = flags.epochs;
  options.verbose = 1;  // on both machines, as in the guide
  options.steps_per_epoch = flags.steps_per_epoch > 0 ? flags.steps_per_epoch : images.train.size() / batch_size;
  if (!flags.curves.empty()) options.validation_data = images.validation.data();
  if (flags.step_times && strategy->is_chief()) options.callbacks.push_back(PrintStepTimes(options.steps_per_epoch));
  const keras::History history = model.Fit(train, options);
  if (!flags.curves.empty() && strategy->is_chief()) {
    std::printf("history:");
    for (const std::string& name : history.names()) std::printf(" %s", name.c_str());
    std::printf("\n");
    history.Plot(flags.curves);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("The programs of guide-004: one network on one device, two devices, two machines.");
  Flags flags;
  line.Add("--program", &flags.program, "Which of the guide's programs this is, without .py",
           examples::OneOf({"baseline", "single_machine_multi_gpu", "two_machine_worker01", "two_machine_worker02"}));
  line.Add("--worker_hosts", &flags.worker_hosts, "host:port of the two machines, with a comma between them");
  line.Add("--data_dir", &flags.data_dir, examples::kDataDirHelp);
  line.Add("--epochs", &flags.epochs, "Epochs of training", examples::AtLeast(1));
  line.Add("--batch_size", &flags.batch_size,
           "Images in a step: of each device, or of the two machines together. The guide has 256, later 512",
           examples::AtLeast(1));
  line.Add("--steps_per_epoch", &flags.steps_per_epoch, "Steps of an epoch. 0: as many as the images give",
           examples::AtLeast(0));
  line.Add("--max_images", &flags.max_images, "Images for training, and for validation. 0: all", examples::AtLeast(0));
  line.Add("--threads", &flags.threads, "Threads of each device. 0: one for each core", examples::AtLeast(0));
  line.AddSwitch("--keras_fans", &flags.keras_fans,
                 "Initialize depthwise kernels as Keras does, and so get the guide's accuracy of 0.1");
  line.Add("--curves", &flags.curves, "Validate after each epoch, and write the guide's two plots to this SVG file");
  line.AddSwitch("--step_times", &flags.step_times, "Print the time of a step after each epoch");
  line.Add(
      "--visible_gpu", &flags.visible_gpu,
      "The N of set_visible_devices(gpus[N]). -1: as in the guide, that is gpus[1] in baseline if there are two GPUs");
  line.Add("--too_late", &flags.too_late, "Set \"visible\" devices or memory \"growth\" after the strategy is made",
           examples::OneOf({"", "visible", "growth"}));
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
