// Measures training steps on a GPU; see kUsage. The peers are torch_network.py and jax_network.py, whose settings and
// fields are the same. Prints one JSON object for each setting.
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/gpu/gpu_kernels.h"
#include "bench/gpu/json_line.h"
#include "bench/guide_network.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"

namespace cohort::gpu_bench {
namespace {

constexpr char kUsage[] =
    "usage: gpu_steps WHAT [--device=/gpu:0] [--batches=64,256,2048] [--precisions=float32,tf32,bfloat16] "
    "[--steps=30]\n"
    "                 [--replicas=1]\n"
    "WHAT is one of:\n"
    "  network     a training step of guide-004's network: forward pass, gradients, SGD with momentum; the batch is on "
    "the\n"
    "              device\n"
    "  perceptron  the same of a perceptron with layers of 784, 128 and 10\n"
    "  fit         a step of Keras's Fit on guide-004's network, under MirroredStrategy; with --replicas=2 on two "
    "logical\n"
    "              devices of the first GPU\n"
    "  losses      the losses of the first 20 steps of guide-004's network, in full float32, to compare devices\n"
    "  kernels     copies of the card's memory, and our depthwise convolutions (--batches: the first one)\n";

using Clock = std::chrono::steady_clock;

struct Flags {
  std::string what;
  std::string device = "/gpu:0";
  std::vector<std::string> batches = {"64", "256", "2048"};
  std::vector<std::string> precisions = {"float32", "tf32", "bfloat16"};
  int steps = 30;
  int replicas = 1;
};

struct Setting {
  int64_t batch;
  std::string precision;
  DType dtype() const { return precision == "bfloat16" ? DType::kBfloat16 : DType::kFloat32; }
};

// Returns five times of a step, in ms, after a warm-up of 10 steps.
std::vector<double> StepTimes(int steps, const std::function<void()>& step) {
  for (int i = 0; i < 10; ++i) step();
  std::vector<double> times;
  for (int sample = 0; sample < 5; ++sample) {
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) step();  // a run returns when the device has done its work
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / steps);
  }
  return times;
}

// Runs `work`. Returns the most memory of the device that tensors and workspaces used meanwhile, in MiB, or 0 if the
// device's memory is the host's.
double PeakMib(const std::string& device, const std::function<void()>& work) {
  try {
    config::ResetMemoryStats(device);
  } catch (const InvalidArgumentError&) {
    work();
    return 0;
  }
  work();
  return static_cast<double>(config::GetMemoryInfo(device).peak) / (1 << 20);
}

JsonLine LineOf(const Flags& flags, const Setting& setting) {
  return JsonLine()
      .Text("peer", "Cohort")
      .Text("what", flags.what)
      .Text("device", flags.device)
      .Number("batch", static_cast<double>(setting.batch))
      .Text("precision", setting.precision);
}

void PrintTimes(JsonLine line, const Setting& setting, const std::vector<double>& times) {
  line.Times(times).Number("images_per_s", static_cast<double>(setting.batch) / MedianOf(times) * 1e3).Print();
}

void CheckFell(float first, float last) {
  if (!(last < first)) throw InternalError(StrCat("[gpu_steps] the loss went from ", first, " to ", last));
}

void MeasureNetwork(const Flags& flags, const Setting& setting) {
  GuideNetwork network(setting.batch, setting.dtype(),
                       {.device = flags.device, .learning_rate = 0.001, .momentum = 0.9, .keeps_batch = true});
  const int64_t free_before = FreeBytesOfCard();
  const GuideNetwork::Run run(network, 0);
  const float first = run.Step();
  std::vector<double> times;
  const double peak_mib = PeakMib(flags.device, [&] { times = StepTimes(flags.steps, [&] { run.Train(); }); });
  const float last = run.Step();
  CheckFell(first, last);
  JsonLine line = LineOf(flags, setting);
  line.Number("first_loss", static_cast<double>(first)).Number("last_loss", static_cast<double>(last));
  line.Number("peak_mib", peak_mib);
  // With the workspaces and handles of libraries, and with what the allocator keeps.
  line.Number("taken_mib", static_cast<double>(free_before - FreeBytesOfCard()) / (1 << 20));
  PrintTimes(line, setting, times);
}

void MeasurePerceptron(const Flags& flags, const Setting& setting) {
  Graph graph;
  const DeviceScope scope(graph, flags.device);
  Tensor labels(DType::kInt32, Shape{setting.batch});
  for (int64_t i = 0; i < setting.batch; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i % 10);
  const auto kept = [&](const Tensor& value) { return ops::Variable(graph, value, {.trainable = false}).value(); };
  const auto computed = [&](const Output& value) { return ops::Cast(value, setting.dtype()); };
  const auto dense = [&](const Output& x, int64_t in, int64_t out) {
    const ops::Variable kernel(graph, Shape{in, out}, initializers::GlorotUniform());
    const ops::Variable bias(graph, Shape{out}, initializers::Zeros());
    return ops::BiasAdd(ops::MatMul(x, computed(kernel.value())), computed(bias.value()));
  };
  const Output x = computed(kept(SineValues(DType::kFloat32, Shape{setting.batch, 784}, 1.0f)));
  const Output logits = ops::Cast(dense(ops::Relu(dense(x, 784, 128)), 128, 10), DType::kFloat32);
  const Output loss = ops::Mean(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = kept(labels), .logits = logits}));
  Node* train = train::MomentumOptimizer(0.001, 0.9).Minimize(loss);
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  const Callable step = session.MakeCallable({}, {}, {train});
  const float first = session.Run(loss).scalar<float>();
  const std::vector<double> times = StepTimes(flags.steps, [&] { step({}); });
  CheckFell(first, session.Run(loss).scalar<float>());
  PrintTimes(LineOf(flags, setting), setting, times);
}

void MeasureFit(const Flags& flags, const Setting& setting) {
  keras::Sequential model =
      KerasGuideNetwork({.dtype_policy = setting.precision == "bfloat16" ? "mixed_bfloat16" : "float32",
                         .strategy = distribute::Mirrored()});
  model.Compile({.optimizer = keras::SGD({.learning_rate = 0.001, .momentum = 0.9}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  const int64_t rows = setting.batch * flags.steps;
  const Tensor images = SineValues(DType::kFloat32, Shape{rows, 28, 28, 1}, 1.0f);
  Tensor labels(DType::kInt64, Shape{rows});
  for (int64_t i = 0; i < rows; ++i) labels.data<int64_t>()[i] = i % 10;
  std::vector<double> times;
  for (int sample = -1; sample < 5; ++sample) {  // the first one is the warm-up
    const auto begin = Clock::now();
    model.Fit(images, labels, {.batch_size = setting.batch, .epochs = 1, .verbose = 0});
    const std::chrono::duration<double, std::milli> time = Clock::now() - begin;
    if (sample >= 0) times.push_back(time.count() / flags.steps);
  }
  PrintTimes(LineOf(flags, setting).Number("replicas", flags.replicas), setting, times);
}

void PrintLosses(const Flags& flags, const Setting& setting) {
  config::EnableTensorFloat32Execution(false);
  GuideNetwork network(setting.batch, DType::kFloat32,
                       {.device = flags.device, .learning_rate = 0.001, .momentum = 0.9, .keeps_batch = true});
  const GuideNetwork::Run run(network, 0);
  for (int step = 0; step < 20; ++step) {
    LineOf(flags, {setting.batch, "float32"})
        .Number("step", step)
        .Number("loss", static_cast<double>(run.Step()))
        .Print();
  }
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

// Returns false if the command line is wrong.
bool Parse(const std::vector<std::string>& arguments, Flags* flags) {
  if (arguments.empty()) return false;
  flags->what = arguments[0];
  for (size_t i = 1; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    if (equals == std::string::npos) return false;
    const std::string name = arguments[i].substr(0, equals), value = arguments[i].substr(equals + 1);
    if (name == "--device") {
      flags->device = value;
    } else if (name == "--batches") {
      flags->batches = WordsOf(value);
    } else if (name == "--precisions") {
      flags->precisions = WordsOf(value);
    } else if (name == "--steps") {
      flags->steps = std::atoi(value.c_str());
    } else if (name == "--replicas") {
      flags->replicas = std::atoi(value.c_str());
    } else {
      return false;
    }
  }
  for (const std::string& batch : flags->batches) {
    if (std::atoi(batch.c_str()) < 1) return false;
  }
  return flags->steps > 0 && flags->replicas > 0 && !flags->batches.empty() && !flags->precisions.empty();
}

// Fails early, and by naming the devices, if there is no such device.
void UseDevices(const Flags& flags) {
  if (flags.device.starts_with("/cpu")) {
    config::SetVisibleDevices({}, "GPU");
    if (flags.what == "fit") config::SetLogicalDevices(config::ListPhysicalDevices("CPU")[0], flags.replicas);
    return;
  }
  const config::PhysicalDevice card = config::ListPhysicalDevices("GPU")[0];
  config::SetVisibleDevices({card}, "GPU");
  if (flags.what == "fit") config::SetLogicalDevices(card, flags.replicas);
  const config::DeviceDetails details = config::GetDeviceDetails(card);
  JsonLine()
      .Text("peer", "Cohort")
      .Text("card", details.device_name)
      .Number("memory_mib", static_cast<double>(details.memory_bytes) / (1 << 20))
      .Print();
}

int Run(const Flags& flags) {
  using Measure = void (*)(const Flags&, const Setting&);
  const std::map<std::string, Measure> kinds = {
      {"network", MeasureNetwork}, {"perceptron", MeasurePerceptron}, {"fit", MeasureFit}};
  const auto kind = kinds.find(flags.what);
  if (kind == kinds.end() && flags.what != "losses" && flags.what != "kernels") {
    std::cerr << "gpu_steps: unknown measurement '" << flags.what << "'\n" << kUsage;
    return 2;
  }
  UseDevices(flags);
  const int64_t first_batch = std::atoi(flags.batches.front().c_str());
  if (flags.what == "kernels") {
    MeasureKernels(first_batch);
    return 0;
  }
  if (flags.what == "losses") {
    PrintLosses(flags, {first_batch, "float32"});
    return 0;
  }
  bool failed = false;
  for (const std::string& batch : flags.batches) {
    for (const std::string& precision : flags.precisions) {
      const Setting setting{std::atoi(batch.c_str()), precision};
      config::EnableTensorFloat32Execution(precision == "tf32");
      try {
        kind->second(flags, setting);
      } catch (const Error& error) {
        LineOf(flags, setting).Text("error", error.what()).Print();  // the others go on
        failed = true;
      }
    }
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace cohort::gpu_bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  cohort::gpu_bench::Flags flags;
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    std::cout << cohort::gpu_bench::kUsage;
    return 0;
  }
  if (!cohort::gpu_bench::Parse(arguments, &flags)) {
    std::cerr << "gpu_steps: wrong arguments\n" << cohort::gpu_bench::kUsage;
    return 2;
  }
  try {
    return cohort::gpu_bench::Run(flags);
  } catch (const cohort::Error& error) {
    std::cerr << "gpu_steps: " << error.what() << "\n";
    return 1;
  }
}
