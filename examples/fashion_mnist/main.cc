// Trains a network of separable convolutions on Fashion-MNIST, with Keras's functions:
//
//   fashion_mnist --data_dir=fashion-mnist --epochs=10 --batch_size=64
//   fashion_mnist --strategy=mirrored --num_replicas=2       on all GPUs, or without GPUs on CPUs
//   cohort launch --workers=2 -- fashion_mnist --strategy=multi_worker
//   cohort launch --workers=1 --restart=3 -- fashion_mnist --backup_dir=/tmp/backup --backup_freq=100
//
// The program chooses a strategy, loads the images, makes and compiles the model, and calls Fit and Evaluate. Then the
// chief saves the learning curves and the model.
#include <algorithm>
#include <cstdio>
#include <string>

#include "cohort/cohort.h"
#include "examples/devices.h"
#include "examples/images.h"
#include "examples/separable_network.h"
#include "examples/task.h"

namespace {

using namespace cohort;

struct Flags {
  std::string data_dir;
  int epochs = 3;
  int64_t batch_size = 64;
  double learning_rate = 0;  // 0: Optimizer chooses
  double momentum = 0.9;
  double weight_decay = 0.0005;
  bool constant_rate = false;
  bool mixed_precision = false;
  bool keras_fans = false;
  bool show_signal = false;
  int threads = 0;
  int64_t max_images = 0;
  int verbose = keras::kVerboseAuto;
  std::string logdir;
  std::string backup_dir;
  int64_t backup_freq = 0;
  std::string strategy = "one_device";
  int num_replicas = 0;
};

// Returns the strategy that the flags name. The results are the same with each strategy, to rounding. All of them use
// the GPUs if there are any.
distribute::StrategyPtr MakeStrategy(const Flags& flags) {
  if (flags.strategy == "multi_worker") {
    const bool has_gpus = !config::ListPhysicalDevices("GPU").empty();
    const int replicas =
        has_gpus ? examples::UseDevicesForReplicas(flags.num_replicas) : std::max(1, flags.num_replicas);
    return distribute::MultiWorkerMirrored(
        {.replicas_per_worker = replicas, .server = {.config = {.intra_op_parallelism_threads = flags.threads}}});
  }
  if (flags.strategy == "one_device") {
    if (flags.num_replicas > 1) {
      throw InvalidArgumentError(
          "[fashion_mnist] expected another --strategy (mirrored, central_storage, multi_worker) "
          "beside --num_replicas=" +
          std::to_string(flags.num_replicas) + "; got --strategy=one_device, which has one replica");
    }
    return distribute::OneDevice(examples::OneTrainingDevice());
  }
  examples::UseDevicesForReplicas(flags.num_replicas);
  return flags.strategy == "mirrored" ? distribute::Mirrored() : distribute::CentralStorage();
}

keras::Sequential Network(const Flags& flags, const distribute::StrategyPtr& strategy) {
  return examples::SeparableNetwork(flags.keras_fans ? keras::DepthwiseFans::kKeras : keras::DepthwiseFans::kTrue,
                                    {.dtype_policy = flags.mixed_precision ? "mixed_bfloat16" : "float32",
                                     .session = {.intra_op_parallelism_threads = flags.threads},
                                     .strategy = strategy});
}

// Returns SGD with a learning rate that falls to zero at the end of the run, along a cosine, unless it is constant.
keras::OptimizerPtr Optimizer(const Flags& flags, const examples::ScaledImages& images) {
  const double by_images = images.generated ? 0.01 : 0.02;  // with generated images 0.02 diverges
  const double rate = flags.learning_rate > 0 ? flags.learning_rate : by_images;
  keras::SGDOptions options = {.learning_rate = rate, .momentum = flags.momentum};
  const int64_t steps = (images.train.size() + flags.batch_size - 1) / flags.batch_size * flags.epochs;
  if (!flags.constant_rate && steps > 0) {
    options.learning_rate =
        keras::CosineDecay({.initial_learning_rate = rate, .decay_steps = static_cast<double>(steps)});
  }
  if (flags.weight_decay > 0) options.weight_decay = flags.weight_decay;
  return keras::SGD(options);
}

int Run(const Flags& flags) {
  const distribute::StrategyPtr strategy = MakeStrategy(flags);
  const examples::ScaledImages images =
      examples::LoadScaledImages(flags.data_dir, flags.max_images, strategy->is_chief());
  keras::Sequential model = Network(flags, strategy);
  model.Compile(
      {.optimizer = Optimizer(flags, images), .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  if (strategy->is_chief()) {
    std::printf("%s: %s\n", strategy->name().c_str(), examples::DevicesText(*strategy).c_str());
    model.Summary();
  }
  if (flags.show_signal) std::printf("%s\n", model.CheckSignal(images.train.data()).ToString().c_str());
  std::vector<keras::CallbackPtr> callbacks;
  if (!flags.logdir.empty()) callbacks.push_back(keras::TensorBoard({.log_dir = flags.logdir}));
  if (!flags.backup_dir.empty()) {
    callbacks.push_back(
        keras::BackupAndRestore({.backup_dir = flags.backup_dir, .save_every_batches = flags.backup_freq}));
  }
  const keras::History history = model.Fit(images.train.data(), {.batch_size = flags.batch_size,
                                                                 .epochs = flags.epochs,
                                                                 .verbose = flags.verbose,
                                                                 .callbacks = callbacks,
                                                                 .validation_data = images.validation.data()});
  if (history.interrupted()) return 0;  // the next run goes on from the backup
  const keras::Logs logs = model.Evaluate(images.test.data(), {.batch_size = 256, .verbose = 0});
  if (!strategy->is_chief()) return 0;
  if (!flags.logdir.empty()) {
    history.Plot(flags.logdir + "/curves.svg");
    model.Save(flags.logdir + "/model.keras");
  }
  std::printf("test accuracy: %.4f%s\n", keras::FindLog(logs, "accuracy").value(),
              examples::ImagesNote(images.generated));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  examples::CommandLine line("Trains a network of separable convolutions on Fashion-MNIST.");
  Flags flags;
  line.Add("--data_dir", &flags.data_dir, examples::kDataDirHelp);
  line.Add("--epochs", &flags.epochs, "Passes over the training images", examples::AtLeast(0));
  line.Add("--batch_size", &flags.batch_size, "Images in one step of all replicas together", examples::AtLeast(1));
  line.Add("--learning_rate", &flags.learning_rate,
           "Initial learning rate of SGD. 0: 0.02, or 0.01 for generated images", examples::AtLeast(0));
  line.AddSwitch("--constant_rate", &flags.constant_rate,
                 "Keep the learning rate. By default it falls to 0 along a cosine");
  line.Add("--momentum", &flags.momentum, "Momentum of SGD");
  line.Add("--weight_decay", &flags.weight_decay,
           "A step subtracts this times the learning rate times the weight from each weight", examples::AtLeast(0));
  line.AddSwitch("--mixed_precision", &flags.mixed_precision, "Compute in bfloat16 and keep the weights in float32");
  line.AddSwitch("--keras_fans", &flags.keras_fans,
                 "Initialize depthwise kernels as Keras does. This network does not learn with them");
  line.AddSwitch("--show_signal", &flags.show_signal,
                 "Print how large activations and gradients are in each layer before training");
  line.Add("--threads", &flags.threads, "Threads of the device. 0: one for each core", examples::AtLeast(0));
  line.Add("--max_images", &flags.max_images, "Images for training, for validation and for the test each. 0: all",
           examples::AtLeast(0));
  line.Add("--verbose", &flags.verbose,
           "-1: a progress bar of the chief, 0: no output, 1: a progress bar, 2: a line for each epoch");
  line.Add("--strategy", &flags.strategy, "one_device, mirrored, central_storage or multi_worker (see TF_CONFIG)",
           examples::OneOf({"one_device", "mirrored", "central_storage", "multi_worker"}));
  line.Add("--num_replicas", &flags.num_replicas,
           "Replicas of this process. 0: one for each GPU; without GPUs one for each core, or 1 with multi_worker",
           examples::AtLeast(0));
  line.Add("--logdir", &flags.logdir, "Folder to which TensorBoard's logs, curves.svg and model.keras are written");
  line.Add("--backup_dir", &flags.backup_dir,
           "Folder for backups, from which the training goes on if it is killed and started again");
  line.Add("--backup_freq", &flags.backup_freq, "Steps between two backups. 0: a backup after each epoch",
           examples::AtLeast(0));
  return examples::Main(argc, argv, line, [&] { return Run(flags); });
}
