// Callbacks: objects of the program that Fit and Evaluate call. The thread that called Fit or Evaluate calls all
// callbacks, in the order of the list. But the callbacks whose comes_last() is true are called after all others of the
// list. After the list come the progress bar and, in Fit, the History. The order of calls is:
//
//   OnTrainBegin; in each epoch: OnEpochBegin, OnTrainBatchBegin and OnTrainBatchEnd for each batch, the test calls of
//   the validation (OnTestBegin, OnTestBatchBegin, OnTestBatchEnd, OnTestEnd), OnEpochEnd; at the end OnTrainEnd.
//
// If SIGTERM interrupts Fit (see Model::Fit), it makes no call for the ends of the epoch and of a running validation,
// but OnTrainInterrupted and then OnTrainEnd.
//
// The test calls are made only in epochs that end with a validation. Evaluate makes only the test calls. If a callback
// or a step throws, Fit or Evaluate makes no further call, not even OnTrainEnd, and throws the same error.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/keras/callbacks/logs.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras {

// The functions of a model that callbacks may call while Fit or Evaluate runs. Trainer implements this class. The
// functions may run steps, so only the thread of Fit or Evaluate may call them: call them inside a callback.
class COHORT_EXPORT CallbackHost {
 public:
  virtual ~CallbackHost() = default;
  // Makes the training end after the current batch.
  virtual void StopTraining() = 0;
  virtual bool stop_training() const = 0;
  // Returns true in the process that writes files and prints messages. If several processes train together, this is the
  // chief; one process alone is always the chief.
  virtual bool is_chief() const { return true; }
  // Waits until all processes that train together have made the call.
  virtual void AwaitWorkers() {}
  // The optimizer's learning rate for the next update. SetLearningRate throws FailedPreconditionError if the rate
  // follows a schedule.
  virtual double GetLearningRate() = 0;
  virtual void SetLearningRate(double rate) = 0;
  virtual bool has_learning_rate_schedule() const = 0;
  virtual int64_t Iterations() = 0;  // updates so far
  // All weights, in the model's order.
  virtual std::vector<Tensor> GetWeights() = 0;
  virtual void SetWeights(const std::vector<Tensor>& weights) = 0;
  // true: puts the moving averages of the trained weights (use_ema of the optimizer) into the model, and keeps the
  // weights in their place. false: puts the weights back. Changes nothing if they are already there. Each epoch of Fit
  // begins with the weights, and Fit ends with the averages. Throws FailedPreconditionError if the optimizer has
  // use_ema=false, or if it has not been applied; InvalidArgumentError with a ParameterServerStrategy; and
  // UnimplementedError if the host cannot do it.
  virtual void PutAveragesInModel(bool in_model);
  // Returns "<layer>/<weight>" for each weight, in the order of GetWeights.
  virtual std::vector<std::string> WeightNames() const = 0;
  // Returns kUp if larger values of the metric `name` are better, kDown if smaller ones are, kNone if this is not
  // known. `name` is a name in the logs, without "val_" in front. All losses ("loss", "..._loss") are kDown.
  virtual MetricDirection DirectionOf(const std::string& name) const = 0;
  // Save the whole model (`.keras`), or only the weights (`.weights.h5`). Throw what SaveModel and SaveWeights of
  // files/model_files.h throw.
  virtual void Save(const std::string& path) = 0;
  virtual void SaveWeights(const std::string& path) = 0;
  // Throws UnimplementedError if Save cannot describe a layer of the model in a file. Writes nothing. A host without an
  // answer does not throw.
  virtual void CheckCanBeSaved() {}
  // Returns the training graph as a serialized GraphDef.
  virtual std::string SerializedGraph() = 0;
  // Returns the state of the training, as the bytes of a weights file. Call it between two batches of Fit: in
  // OnTrainBatchEnd, OnEpochEnd or OnTrainInterrupted. The state has the weights, the optimizer's state, epoch, batch
  // and the losses so far. It also has the position in the data and the metrics of each process that takes part in the
  // training. All processes make the call together. The chief gets the bytes; the others get "". Throws
  // FailedPreconditionError outside of Fit, and UnimplementedError if the host cannot do it.
  virtual std::string BackUpTraining();
  // Sets the training to a state of BackUpTraining and returns true; Fit then continues from there. Call it in
  // OnTrainBegin. After OnTrainBegin of all callbacks, each of them gets back its own state (Callback::RestoreState).
  // `where` names the file that this process has found. Give nullopt as `backup` if this process has found no file. If
  // no process has found a file, changes nothing and returns false. All processes make the call together. Throws
  // InvalidArgumentError if the bytes are not a backup of this model, data and number of processes, or if another
  // process has found other bytes than the chief; the error names that process. Throws DataLossError for damaged bytes.
  virtual bool RestoreTraining(const std::optional<std::string>& backup, const std::string& where);
};

// Facts about the call of Fit or Evaluate, for its callbacks.
struct COHORT_EXPORT FitParams {
  int verbose = 1;          // 0 silent, 1 progress bar, 2 one line for each epoch
  int epochs = 1;           // training ends after this epoch, counted from 1
  int initial_epoch = 0;    // the first epoch, counted from 0
  int64_t steps = 0;        // batches of an epoch; 0: not known (yet)
  bool is_testing = false;  // true for Evaluate, false for Fit
};

// The base of callbacks. The program and the running Fit or Evaluate share ownership. Only the thread of Fit or
// Evaluate calls it.
class COHORT_EXPORT Callback {
 public:
  virtual ~Callback() = default;
  // Fit and Evaluate call it before all other functions. A callback may use `host` until this Fit or Evaluate ends.
  void Attach(CallbackHost* host, const FitParams& params) {
    host_ = host;
    params_ = params;
  }
  // Fit calls it with the number of batches of an epoch, after the last training batch of each epoch. As long as this
  // number is not known, Fit does not call it.
  void SetSteps(int64_t steps) { params_.steps = steps; }

  // Epochs and batches are counted from 0. OnEpochEnd may add to `logs`; the callbacks after it in the list see the
  // addition.
  virtual void OnTrainBegin() {}
  virtual void OnTrainEnd(const Logs& logs) {}
  // Called between two batches if SIGTERM has interrupted the training. The training is not done: a later Fit may go
  // on.
  virtual void OnTrainInterrupted() {}
  virtual void OnEpochBegin(int epoch) {}
  virtual void OnEpochEnd(int epoch, Logs& logs) {}
  virtual void OnTrainBatchBegin(int64_t batch) {}
  virtual void OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) {}
  virtual void OnTestBegin() {}
  virtual void OnTestEnd(const Logs& logs) {}
  virtual void OnTestBatchBegin(int64_t batch) {}
  virtual void OnTestBatchEnd(int64_t batch, const BatchLogs& logs) {}

  // How a callback changes the training: its class, and the options on which the change depends, as text.
  struct Influence {
    std::string kind;
    std::string options;
  };
  // Returns a value if the callback changes the training. Processes that train together must have the same callbacks
  // that return a value here, in the same order; Fit compares their influences before it trains. Override it in a class
  // that stops the training, changes rates or weights, or makes a call of the host that all processes must make.
  // nullopt: the callback only observes or writes, and a process need not have it.
  virtual std::optional<Influence> influence() const { return std::nullopt; }

  // The values that a callback remembers between batches or epochs, with the name of its class. Values may have any
  // shapes.
  struct State {
    std::string kind;
    std::vector<Tensor> values;
  };
  // Returns the state that this callback needs to continue a training, or nullopt if it needs none. BackUpTraining
  // stores the states of the chief's callbacks; after a restart, the callbacks of all processes get these states.
  virtual std::optional<State> SaveState() const { return std::nullopt; }
  // Sets the state to the values of a SaveState of the same kind. Fit calls it after OnTrainBegin, if a training is
  // continued. Return false if the values are invalid; Fit then throws InvalidArgumentError.
  virtual bool RestoreState(const std::vector<Tensor>& values) { return false; }
  // Returns the name of the callback if it needs the functions for batches. A ParameterServerStrategy has no order of
  // batches, so Fit and Evaluate refuse such a callback there, and call no functions for batches of others. Override it
  // in a class that cannot do without. nullopt: the callback works with epochs alone, too.
  virtual std::optional<std::string> needs_batches() const { return std::nullopt; }
  // Returns true if this callback must be called after all callbacks of the list that return false.
  virtual bool comes_last() const { return false; }

 protected:
  CallbackHost& host() const { return *host_; }
  const FitParams& params() const { return params_; }

 private:
  CallbackHost* host_ = nullptr;
  FitParams params_;
};

using CallbackPtr = std::shared_ptr<Callback>;

// Calls all callbacks of a list, in order. The running Fit or Evaluate owns it.
class COHORT_EXPORT CallbackList final : public Callback {
 public:
  explicit CallbackList(std::vector<CallbackPtr> callbacks) : callbacks_(std::move(callbacks)) {}
  void AttachAll(CallbackHost* host, const FitParams& params);
  void SetStepsOfAll(int64_t steps);
  // Returns the states of all callbacks that have one, in order.
  std::vector<State> SaveStates() const;
  // Gives each callback the first state of its kind that no earlier callback has taken. Logs a warning for a callback
  // without a state, which begins anew. Throws InvalidArgumentError that names `where` and the kind if a callback's
  // RestoreState returns false.
  void RestoreStates(const std::vector<State>& states, const std::string& where);

  void OnTrainBegin() override;
  void OnTrainEnd(const Logs& logs) override;
  void OnTrainInterrupted() override;
  void OnEpochBegin(int epoch) override;
  void OnEpochEnd(int epoch, Logs& logs) override;
  void OnTrainBatchBegin(int64_t batch) override;
  void OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) override;
  void OnTestBegin() override;
  void OnTestEnd(const Logs& logs) override;
  void OnTestBatchBegin(int64_t batch) override;
  void OnTestBatchEnd(int64_t batch, const BatchLogs& logs) override;

 private:
  std::vector<CallbackPtr> callbacks_;
};

// Functions of a LambdaCallback. An empty one is not called.
struct COHORT_EXPORT LambdaCallbackOptions {
  std::function<void()> on_train_begin;
  std::function<void(const Logs&)> on_train_end;
  std::function<void(int)> on_epoch_begin;
  std::function<void(int, Logs&)> on_epoch_end;
  std::function<void(int64_t)> on_train_batch_begin;
  std::function<void(int64_t, const BatchLogs&)> on_train_batch_end;
};
COHORT_EXPORT CallbackPtr LambdaCallback(LambdaCallbackOptions options);

}  // namespace cohort::keras
