// A worker of a MultiWorkerMirrored training under test; TF_CONFIG says which, without it one process trains alone. It
// prints
//
//   serving pid PID
//   ready                      before it meets the others
//   acked N                    after its N-th step
//   holding PHASE              and waits to be ended, where --hold names the phase
//   weights A B C ...          at the end, of all weights in order
//   failed MS CODE: MESSAGE    MS ms after the step before it had ended; then it waits to be ended
//   end
//
// Flags, all as --name=value: --epochs  --batch_size  --examples  --pause_ms (after each step)  --units (of a layer)
//   --silence_ms  --replicas  --hold (start: the server runs; built: before Fit; epoch: mid-epoch, in the third step;
//   end: when the last step is done)
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "cohort/core/str_cat.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/callbacks.h"
#include "cohort/keras/testing/updates.h"
#include "cohort/registration.h"
#include "tests/chaos/task_flags.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;

void HoldAt(const Flags& flags, const std::string& phase) {
  if (flags.Text("hold") != phase) return;
  std::printf("holding %s\n", phase.c_str());
  pause();
}

void Train(const Flags& flags, Clock::time_point* last) {
  ServerOptions server;
  server.silence_limit = flags.Ms("silence_ms", 60'000);
  server.heartbeat_interval = std::min(server.silence_limit / 5, std::chrono::milliseconds(1000));
  server.config.intra_op_parallelism_threads = 1;
  const auto strategy = distribute::MultiWorkerMirrored(
      {.replicas_per_worker = static_cast<int>(flags.Integer("replicas", 1)), .server = server});
  std::printf("serving pid %d\n", static_cast<int>(getpid()));
  HoldAt(flags, "start");
  std::printf("ready\n");
  *last = Clock::now();
  keras::TrainingCase training;
  training.optimizer = keras::SGD({.learning_rate = 0.1, .momentum = 0.9});
  training.examples = flags.Integer("examples", 50);
  training.regularized = training.normalized = true;
  keras::Sequential model(
      {keras::Dense(flags.Integer("units", 7), {.activation = "tanh"}),
       keras::BatchNormalization({.synchronized = true}), keras::Dense(3, {.activation = "softmax"})},
      {.seed = 4, .strategy = strategy});
  model.Compile({.optimizer = training.optimizer, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  model.Build(Shape{-1, 5});
  HoldAt(flags, "built");
  *last = Clock::now();
  int steps = 0;
  keras::FitOptions fit = {.batch_size = flags.Integer("batch_size", 8),
                           .epochs = static_cast<int>(flags.Integer("epochs", 2)),
                           .verbose = 0};
  const auto pace = flags.Ms("pause_ms", 0);
  fit.callbacks = {keras::LambdaCallback({.on_train_end = [&](const keras::Logs&) { HoldAt(flags, "end"); },
                                          .on_train_batch_end =
                                              [&](int64_t, const keras::BatchLogs&) {
                                                std::printf("acked %d\n", ++steps);
                                                if (steps == 3) HoldAt(flags, "epoch");
                                                std::this_thread::sleep_for(pace);  // the trainer's pace
                                                *last = Clock::now();
                                              }})};
  model.Fit(DataOf(training), fit);
  std::string line = "weights";
  for (const Tensor& weight : model.GetWeights()) {
    for (int64_t i = 0; i < weight.num_elements(); ++i) line += StrCat(" ", weight.data<float>()[i]);
  }
  std::printf("%s\nend\n", line.c_str());
}

void Run(const Flags& flags) {
  RegisterAll();
  Clock::time_point last = Clock::now();
  try {
    Train(flags, &last);
  } catch (const Error&) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last);
    std::printf("failed %ld %s\n", static_cast<long>(took.count()), Status::FromCurrentException().ToString().c_str());
    pause();  // so that nobody else ends because this process does
  }
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    cohort::testing::Run(cohort::testing::Flags(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strategy_task: %s\n", error.what());
    return 1;
  }
}
