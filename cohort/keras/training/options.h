// The options of models, Compile, Fit, Evaluate and Predict, with Keras 3's names and defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/distribute/strategy.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/keras/training/model_data.h"
#include "cohort/keras/training/train_step.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {

// The options of Model and Sequential.
struct COHORT_EXPORT ModelOptions {
  std::string name;  // "": "sequential" or "functional"
  // "float32", or "mixed_bfloat16": layers compute in bfloat16, weights stay float32.
  std::string dtype_policy = "float32";
  int64_t seed = 0;  // for initial values and random layers
  // Threads and placement. With MultiWorkerMirrored in a cluster, the numbers of threads are those of the server
  // (MultiWorkerOptions::server.config); those given here are ignored.
  SessionConfig session;
  // The replicas that train together. Null: one replica. The batches of Fit are global and are divided among the
  // replicas.
  distribute::StrategyPtr strategy = nullptr;
};

// A value for `verbose`: 1, but 2 with a ParameterServerStrategy, whose batches run at the same time. Of several
// workers only the chief prints; with another value each worker prints that has it.
inline constexpr int kVerboseAuto = -1;

// One loss, or one for each output: "mse", {"mse", keras::Huber()}.
class COHORT_EXPORT LossList {
 public:
  LossList() = default;
  LossList(const char* name) : losses_{LossArgument(name)} {}
  LossList(const std::string& name) : losses_{LossArgument(name)} {}
  LossList(LossPtr loss) : losses_{LossArgument(std::move(loss))} {}
  LossList(std::initializer_list<LossArgument> losses) : losses_(losses) {}
  LossList(std::vector<LossArgument> losses) : losses_(std::move(losses)) {}
  const std::vector<LossArgument>& get() const { return losses_; }

 private:
  std::vector<LossArgument> losses_;
};

// The arguments of Model::Compile.
struct COHORT_EXPORT CompileOptions {
  OptimizerArgument optimizer = "rmsprop";
  // The losses of the outputs, in order. A single loss is used for every output. An output with an empty argument is
  // not trained.
  LossList loss;
  std::vector<double> loss_weights;              // one for each output, or one for all outputs; empty: all are 1
  std::vector<MetricArgument> metrics;           // for every output with a loss; they ignore sample weights
  std::vector<MetricArgument> weighted_metrics;  // for every output with a loss; they use sample weights
  // With a ParameterServerStrategy: how many steps a worker makes, one after another, each time it is asked. So the
  // chief sends fewer messages. The last execution of an epoch makes the steps that are left. Other strategies accept
  // only 1.
  int steps_per_execution = 1;
  // Steps of the program's own (train_step.h). Empty: DefaultTrainStep and DefaultTestStep. Files do not contain them:
  // pass them to Compile again after LoadModel.
  std::function<void(StepContext& step)> train_step;
  std::function<void(StepContext& step)> test_step;
};

// The arguments of Model::Fit beside the data.
struct COHORT_EXPORT FitOptions {
  int64_t batch_size = 32;     // if the data are tensors; datasets have batches already
  int epochs = 1;              // training ends after this epoch; the first epoch is epoch 1
  int verbose = kVerboseAuto;  // 0 silent, 1 progress bar, 2 one line for each epoch
  std::vector<CallbackPtr> callbacks;
  // The fraction of the examples, in (0, 1), that is used for validation and not for training: the last examples in the
  // order before any shuffling. 0: none. Not used if validation_data is given.
  double validation_split = 0.0;
  ModelData validation_data;
  bool shuffle = true;  // if the data are tensors
  std::map<int64_t, double> class_weight;
  int initial_epoch = 0;              // number of epochs that are skipped: training begins with the epoch after them
  int64_t steps_per_epoch = 0;        // 0: until the data end
  int64_t validation_steps = 0;       // number of batches, from the start of the data; 0: until the data end
  int64_t validation_batch_size = 0;  // if the data are tensors; 0: batch_size
  int validation_freq = 1;            // 1: validates after every epoch; n: after every n-th epoch
  // The seed of the order of shuffled tensors. The order depends on the seed and on the number of the epoch. For this
  // number, the epochs of all calls of Fit are counted together. But if initial_epoch is greater than 0, this call
  // begins to count at initial_epoch, whatever earlier calls did.
  int64_t seed = 0;
  // If true, one forward and one backward pass of the first batch measure activations and gradients layer by layer,
  // once for each model, before its first step. If these become too small or too large, Fit logs a warning with numbers
  // and a remedy.
  bool signal_check = true;
  // How several processes divide the batches of a dataset (docs/strategies.md). If the data are tensors, this option
  // is not used: each process takes a part of every batch.
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
  // Number of steps between two replica checks, which compare the weights and the optimizer's variables of all
  // replicas. 0: no checks between steps. Fit always checks when it begins and when it ends.
  int64_t replica_check_steps = 500;
};

// The arguments of Model::Evaluate beside the data.
struct COHORT_EXPORT EvaluateOptions {
  int64_t batch_size = 32;     // if the data are tensors
  int verbose = kVerboseAuto;  // 0 silent, 1 progress bar, 2 one line at the end
  int64_t steps = 0;           // number of batches; 0: until the data end
  std::vector<CallbackPtr> callbacks;
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
};

// The arguments of Model::Predict beside the data.
struct COHORT_EXPORT PredictOptions {
  int64_t batch_size = 32;  // if the data are tensors
  int64_t steps = 0;        // number of batches; 0: until the data end
};

}  // namespace cohort::keras
