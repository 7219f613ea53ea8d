// Trainer: trains, evaluates and predicts with a model, and serves the model's callbacks. Internal to keras/.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/callbacks/history.h"
#include "cohort/keras/training/batches.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/model_state.h"
#include "cohort/keras/training/options.h"
#include "cohort/keras/training/signal_check.h"

namespace cohort::keras {

// The copies of a Model share one Trainer. Only one thread at a time may use it. PredictAll is an exception: several
// threads may call it at the same time, if no thread calls another function meanwhile. The functions from Fit to
// CheckSignal are described at the functions of Model with the same names.
class Trainer final : public CallbackHost {
 public:
  explicit Trainer(std::shared_ptr<ModelState> state) : state_(std::move(state)) {}

  History Fit(const ModelData& data, const FitOptions& options);
  Logs Evaluate(const ModelData& data, const EvaluateOptions& options);
  std::vector<Tensor> PredictAll(const ModelData& x, const PredictOptions& options);
  Logs TrainOnBatch(const ModelData& batch);
  void ResetMetrics();
  SignalReport CheckSignal(const ModelData& data, int64_t batch_size);

  // CallbackHost.
  void StopTraining() override { stop_training_ = true; }
  bool stop_training() const override { return stop_training_; }
  bool is_chief() const override { return state_->is_chief(); }
  void AwaitWorkers() override;
  double GetLearningRate() override;
  void SetLearningRate(double rate) override;
  bool has_learning_rate_schedule() const override;
  int64_t Iterations() override;
  std::vector<Tensor> GetWeights() override;
  void SetWeights(const std::vector<Tensor>& weights) override;
  void PutAveragesInModel(bool in_model) override;
  std::vector<std::string> WeightNames() const override;
  MetricDirection DirectionOf(const std::string& name) const override;
  void Save(const std::string& path) override;
  void CheckCanBeSaved() override;
  void SaveWeights(const std::string& path) override;
  std::string SerializedGraph() override;
  std::string BackUpTraining() override;
  bool RestoreTraining(const std::optional<std::string>& backup, const std::string& where) override;

 private:
  ModelEngine& engine() const { return state_->engine(); }
  // Builds the model for these data, if it is not built yet. Throws what ModelState::CompiledEngine throws.
  void Prepare(const ModelData& data, const char* caller) {
    state_->RequireCompiled(caller);
    state_->CompiledEngine(caller, SpecOfData(data, caller));
  }
  History FitHere(const ModelData& all, const FitOptions& options);
  Batches TrainingBatches(const ModelData& data, const FitOptions& options, int64_t first_pass) const;
  // Returns the batches for the validations of all epochs, or null if there are no validation data.
  std::unique_ptr<Batches> ValidationBatches(const ModelData& data, const FitOptions& options) const;
  // Compares the facts that must be equal in all processes before they train together. Then every process takes the
  // chief's seeds.
  void ExpectAgreement(Batches& batches, Batches* validation, const FitOptions& options);
  // Runs the signal check and logs its problems. `where` is the epoch, for errors.
  void ReportSignal(Batches& batches, const StepFunction& step, const std::string& where);
  // Returns 0, 1 or 2 for an option that may be kVerboseAuto, which is 0 if this process is not the chief. Throws
  // InvalidArgumentError for other numbers, and for 1 if the steps run on remote workers.
  int VerboseOf(int verbose, const char* caller) const;
  // Throws InvalidArgumentError for options that need an order of the batches, if the steps run on remote workers.
  void CheckRemote(const char* caller, const std::vector<CallbackPtr>& callbacks, int64_t steps,
                   const char* name_of_steps) const;
  bool is_remote() const { return !engine().strategy().closure_workers().empty(); }
  // Returns the callbacks of a call, with the progress bar if `verbose` asks for it.
  std::vector<CallbackPtr> CallbacksOf(const std::vector<CallbackPtr>& given, int verbose) const;
  // Runs the epochs from `progress` on. Returns the logs of the last one.
  Logs RunEpochs(const StepFunction& step, Batches* validation, const FitOptions& options, FitProgress& progress,
                 History& history);
  // Changes the trained weights or their averages. Throws what GraphOptimizer::ChangeAverages throws.
  void ChangeAverages(AveragesChange change);
  // Puts the trained weights back into the model if their averages are in it.
  void PutWeightsBack() {
    if (state_->averages_in_model()) PutAveragesInModel(false);
  }
  // Gives the weights and their averages the values of the averages, if the optimizer keeps some and has made an
  // update.
  void TakeAverages();
  Logs EvaluateHere(const ModelData& data, const EvaluateOptions& options);
  // If stop() becomes true, ends after the current batch and does not call OnTestEnd.
  Logs RunTest(
      Batches& batches, Callback& callbacks, const std::string& where,
      const std::function<bool()>& stop = [] { return false; });
  // Returns true if SIGTERM has told this Fit to stop: with several workers, if it has told one of them, and all of
  // them know it from the last step. A training that a callback has stopped ends as usual instead.
  bool interrupted() const {
    return !stop_training_ && (engine().strategy().num_workers() == 1 ? got_sigterm_.load() : stop_agreed_);
  }
  FitProgress& RunningFit(const char* caller) const;
  // Logs where a training goes on and, with a ParameterServerStrategy, how many steps of an earlier program are lost.
  // `where` names the backup. `why` says why the values on the parameter servers are not used, or is "".
  void ReportLostSteps(bool restored, const std::string& where, const std::string& why = "") const;
  // Returns how many steps the parameter servers are ahead of a backup of the training `number`, which was made at
  // `step` after `batch` batches of its epoch. Returns nullopt if they cannot be used instead of the backup, and sets
  // *why to the reason if there is an earlier program. Requires: Fit runs.
  std::optional<int64_t> StepsAfterBackup(int64_t number, int64_t step, int64_t batch, std::string* why) const;
  // Gives the variables, which were restored from the backup `where`, the values that the parameter servers had, `more`
  // steps later. Metrics keep those of the backup. Requires: Fit runs.
  void GoOnWithServers(int64_t more, const std::string& where);
  // Returns the state variables of the training's metrics.
  std::vector<ops::Variable> MetricVariables() const;

  const std::shared_ptr<ModelState> state_;
  bool stop_training_ = false;
  std::atomic<bool> got_sigterm_ = false;  // in this Fit
  bool stop_agreed_ = false;               // a worker has got it, and all know it
  FitProgress* fit_ = nullptr;             // while Fit runs
  bool signal_checked_ = false;
  int64_t epochs_fitted_ = 0;
  const Batches* tested_ = nullptr;  // while RunTest runs
};

}  // namespace cohort::keras
