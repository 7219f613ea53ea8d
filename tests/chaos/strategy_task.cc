// A worker of a MultiWorkerMirrored training under test. TF_CONFIG says which worker it is. Without TF_CONFIG one
// process trains alone. It prints
//
//   serving pid PID
//   ready                      before it meets the others
//   acked N                    after its N-th step
//   holding PHASE              if --hold names the phase; then it waits for SIGUSR1 or to be ended
//   weights A B C ...          at the end, all weights in order
//   failed MS CODE: MESSAGE    MS ms after the step before it had ended; then it waits to be ended (--exits=1: it ends
//                              by itself, with exit code 1)
//   end
//
// The flags have the form --name=value:
//   --epochs  --batch_size  --examples  --pause_ms (after each step)  --units (of a layer)  --steps_per_epoch
//   --built=0 (layers do not know the data before Fit)  --callbacks (early_stopping, terminate_on_nan)
//   --own_data (each worker has data of its own: good, labels, nan, empty, raises, shape, strings, unbatched)
//   --silence_ms  --replicas  --connect_timeout_secs  --folder (for the files of callbacks; without it there are none)
//   --implementation (of communication)
//   --hold PHASE, where the phase is
//     start: the server runs
//     first_collective: the first collective goes on, and "holding" is printed two seconds later; another worker has to
//       keep the collective from ending
//     built: before Fit
//     epoch: in the third step, in the middle of an epoch
//     checkpoint: the chief writes the model
//     backup: before the backup of an epoch
//     end: the last step is done
//     every: each of these except first_collective
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <set>
#include <string>
#include <thread>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/worker_folder.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/testing/updates.h"
#include "cohort/registration.h"
#include "tests/chaos/task_flags.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the signal that ends a hold. It is blocked in all threads, and HoldAt waits for it.
sigset_t GoOn() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return set;
}

// Waits at `phase` if --hold names it, but only once for each phase.
void HoldAt(const Flags& flags, const std::string& phase) {
  static std::set<std::string> held;
  if (flags.Text("hold") != phase && flags.Text("hold") != "every") return;
  if (!held.insert(phase).second) return;
  std::printf("holding %s\n", phase.c_str());
  const sigset_t go_on = GoOn();
  int signal = 0;
  while (sigwait(&go_on, &signal) != 0) continue;
}

// A layer that returns its input. Its configuration is read before training, and when the model is written.
class WatchesSaving final : public keras::Layer {
 public:
  explicit WatchesSaving(std::function<void()> saving) : Layer("WatchesSaving"), saving_(std::move(saving)) {}
  std::vector<Output> Call(keras::CallContext&, const std::vector<Output>& inputs) const override { return inputs; }
  keras::ConfigValue::Object Config() const override {
    saving_();
    return {};
  }

 private:
  const std::function<void()> saving_;
};

std::vector<keras::CallbackPtr> WritingCallbacks(const std::string& folder, const distribute::Strategy& strategy) {
  CreateDirectories(folder);  // CSVLogger is called first, and it does not make the folder
  const auto write = [folder, &strategy](int epoch, keras::Logs&) {
    const distribute::WorkerFolder mine(strategy, folder + "/own");
    WriteFileAtomically(mine.path() + "/epoch.txt", StrCat(epoch));
  };
  return {keras::BackupAndRestore({.backup_dir = folder + "/backup"}),
          keras::ModelCheckpoint({.filepath = folder + "/model.keras"}), keras::CSVLogger(folder + "/log.csv"),
          keras::TensorBoard({.log_dir = folder + "/logs"}), keras::LambdaCallback({.on_epoch_end = write})};
}

// Returns data of this worker, of the kind that --own_data names: good, or with one of these mistakes: a label that no
// class has, an input that is NaN, no element, an element that cannot be read, inputs of another shape, inputs that are
// not numbers, or data that are not in batches.
keras::ModelData OwnData(const keras::TrainingCase& training, const std::string& kind) {
  const keras::ModelData all = DataOf(training);
  Tensor x = all.x()[0], y = all.y()[0];
  const int64_t last = training.examples - 1;
  if (kind == "labels") y.data<int64_t>()[last] = 7;
  if (kind == "nan") x.data<float>()[last * 5] = std::numeric_limits<float>::quiet_NaN();
  if (kind == "shape") x = SeededNoise(Shape{training.examples, 4}, 1);
  if (kind == "strings") x = Tensor(DType::kString, x.shape());
  data::Dataset dataset = data::Dataset::FromTensorSlices({x, y});
  if (kind == "empty") dataset = dataset.Take(0);
  if (kind == "raises") {
    dataset = dataset.Filter([last, read = int64_t{0}](const std::vector<Tensor>&) mutable {
      if (read++ == last) throw DataLossError("the last row is damaged");
      return true;
    });
  }
  return kind == "unbatched" ? dataset : dataset.Batch(training.batch_size);
}

distribute::StrategyPtr StrategyOf(const Flags& flags) {
  ServerOptions server;
  server.silence_limit = flags.Ms("silence_ms", 60'000);
  server.heartbeat_interval = std::min(server.silence_limit / 5, std::chrono::milliseconds(1000));
  server.config.intra_op_parallelism_threads = 1;
  server.config.connect_timeout = flags.Seconds("connect_timeout_secs", 7200);
  return distribute::MultiWorkerMirrored(
      {.communication = {.implementation = distribute::ImplementationByName(flags.Text("implementation", "auto"))},
       .replicas_per_worker = static_cast<int>(flags.Integer("replicas", 1)),
       .server = server});
}

// `steps` counts the steps that have ended, and `last` gets the time of the latest one.
keras::FitOptions FitOf(const Flags& flags, const distribute::Strategy& strategy, int& steps, Clock::time_point* last) {
  keras::FitOptions fit = {.batch_size = flags.Integer("batch_size", 8),
                           .epochs = static_cast<int>(flags.Integer("epochs", 2)),
                           .verbose = 0,
                           .steps_per_epoch = flags.Integer("steps_per_epoch", 0)};
  const auto pace = flags.Ms("pause_ms", 0);
  keras::LambdaCallbackOptions phases;
  phases.on_train_end = [&flags](const keras::Logs&) { HoldAt(flags, "end"); };
  phases.on_epoch_end = [&flags](int, keras::Logs&) { HoldAt(flags, "backup"); };
  phases.on_train_batch_end = [&flags, &steps, pace, last](int64_t, const keras::BatchLogs&) {
    std::printf("acked %d\n", ++steps);
    if (steps == 3) HoldAt(flags, "epoch");
    std::this_thread::sleep_for(pace);  // the trainer's pace
    *last = Clock::now();
  };
  fit.callbacks = {keras::LambdaCallback(phases)};
  if (const std::string folder = flags.Text("folder"); !folder.empty()) {
    for (const auto& callback : WritingCallbacks(folder, strategy)) fit.callbacks.push_back(callback);
  }
  if (flags.Text("callbacks") == "early_stopping") fit.callbacks.push_back(keras::EarlyStopping({.monitor = "loss"}));
  if (flags.Text("callbacks") == "terminate_on_nan") fit.callbacks.push_back(keras::TerminateOnNaN());
  if (!flags.Text("own_data").empty()) fit.auto_shard = data::AutoShardPolicy::kOff;
  return fit;
}

// Sets *kept to the strategy, so that its server stays if this function throws.
void Train(const Flags& flags, distribute::StrategyPtr* kept, Clock::time_point* last) {
  *kept = StrategyOf(flags);
  const distribute::StrategyPtr& strategy = *kept;
  std::printf("serving pid %d\n", static_cast<int>(getpid()));
  HoldAt(flags, "start");
  std::printf("ready\n");
  *last = Clock::now();
  if (flags.Text("hold") == "first_collective") {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      std::printf("holding first_collective\n");
    }).detach();
  }
  keras::TrainingCase training;
  training.optimizer = keras::SGD({.learning_rate = 0.1, .momentum = 0.9});
  training.examples = flags.Integer("examples", 50);
  training.regularized = training.normalized = true;
  int steps = 0;
  keras::Sequential model({keras::Dense(flags.Integer("units", 7), {.activation = "tanh"}),
                           keras::BatchNormalization({.synchronized = true}),
                           keras::Dense(3, {.activation = "softmax"}), keras::MakeLayer<WatchesSaving>([&] {
                             if (steps > 0) HoldAt(flags, "checkpoint");
                           })},
                          {.seed = 4, .strategy = strategy});
  model.Compile({.optimizer = training.optimizer, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  if (flags.Integer("built", 1) != 0) model.Build(Shape{-1, 5});
  HoldAt(flags, "built");
  *last = Clock::now();
  const keras::FitOptions fit = FitOf(flags, *strategy, steps, last);
  training.batch_size = fit.batch_size;
  const std::string own = flags.Text("own_data");
  model.Fit(own.empty() ? DataOf(training) : OwnData(training, own), fit);
  std::string line = "weights";
  for (const Tensor& weight : model.GetWeights()) {
    for (int64_t i = 0; i < weight.num_elements(); ++i) line += StrCat(" ", weight.data<float>()[i]);
  }
  std::printf("%s\nend\n", line.c_str());
}

void Run(const Flags& flags) {
  RegisterAll();
  Clock::time_point last = Clock::now();
  distribute::StrategyPtr strategy;
  try {
    Train(flags, &strategy, &last);
  } catch (const Error&) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last);
    std::printf("failed %ld %s\n", static_cast<long>(took.count()), Status::FromCurrentException().ToString().c_str());
    if (flags.Integer("exits", 0) != 0) throw;
    pause();  // so that nobody else ends because this process does
  }
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const sigset_t go_on = cohort::testing::GoOn();
  sigprocmask(SIG_BLOCK, &go_on, nullptr);
  try {
    cohort::testing::Run(cohort::testing::Flags(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strategy_task: %s\n", error.what());
    return 1;
  }
}
