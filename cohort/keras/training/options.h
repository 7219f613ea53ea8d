// What models, Compile, Fit, Evaluate and Predict are told, with Keras 3's names and defaults.
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

struct COHORT_EXPORT ModelOptions {
  std::string name;  // "": "sequential", "functional"
  // "float32", or "mixed_bfloat16": layers compute in bfloat16, weights stay float32.
  std::string dtype_policy = "float32";
  int64_t seed = 0;  // of initial values and of random layers
  // Threads, placement. With MultiWorkerMirrored in a cluster the numbers of threads are ignored: those of the server
  // (MultiWorkerOptions::server.config) count.
  SessionConfig session;
  // Replicas that train together; null: one alone. Batches given to Fit are global and are divided among them.
  distribute::StrategyPtr strategy = nullptr;
};

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

struct COHORT_EXPORT CompileOptions {
  OptimizerArgument optimizer = "rmsprop";
  // Of the outputs in order. One alone is that of every output; an empty argument: that output is not trained.
  LossList loss;
  std::vector<double> loss_weights;              // one an output; empty: 1 each
  std::vector<MetricArgument> metrics;           // of every output with a loss; sample weights do not count in them
  std::vector<MetricArgument> weighted_metrics;  // those in which they do
  // Steps of the program's own (train_step.h); empty: those of DefaultTrainStep and DefaultTestStep. Files do not hold
  // them: give them to Compile again after LoadModel.
  std::function<void(StepContext& step)> train_step;
  std::function<void(StepContext& step)> test_step;
};

struct COHORT_EXPORT FitOptions {
  int64_t batch_size = 32;  // of tensors; datasets come in batches
  int epochs = 1;           // the number of the last epoch
  int verbose = 1;          // 0 silent, 1 progress bar, 2 a line an epoch
  std::vector<CallbackPtr> callbacks;
  // A share in (0, 1) of the examples, the last ones before any shuffling, that are not trained on but validate.
  double validation_split = 0.0;
  ModelData validation_data;
  bool shuffle = true;  // of tensors
  std::map<int64_t, double> class_weight;
  int initial_epoch = 0;
  int64_t steps_per_epoch = 0;        // 0: until the data ends
  int64_t validation_steps = 0;       // batches, each time the first ones; 0: until the data ends
  int64_t validation_batch_size = 0;  // of tensors; 0: batch_size
  int validation_freq = 1;            // epochs between validations
  // Seed of the order of shuffled tensors. The order follows from the seed and the number of the epoch. Epochs are
  // counted over all calls of Fit, or from initial_epoch if that is set.
  int64_t seed = 0;
  // Before the first step ever, and once a model: a forward and a backward pass of the first batch measure how the
  // signal goes through the layers; what collapses or explodes is a warning with numbers and a remedy.
  bool signal_check = true;
  // How several processes divide the batches of a dataset (docs/strategies.md). Tensors are divided by kData.
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
  // Steps between comparisons of the weights and the optimizer's variables of all replicas; 0: only where Fit begins
  // and ends.
  int64_t replica_check_steps = 500;
};

struct COHORT_EXPORT EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 1;
  int64_t steps = 0;  // 0: until the data ends
  std::vector<CallbackPtr> callbacks;
  data::AutoShardPolicy auto_shard = data::AutoShardPolicy::kAuto;
};

struct COHORT_EXPORT PredictOptions {
  int64_t batch_size = 32;
  int64_t steps = 0;
};

}  // namespace cohort::keras
