// Callbacks: objects of the program that Fit and Evaluate call. The training loop calls all callbacks on its own
// thread, in the order of the list. After them come callbacks whose comes_last() is true, then the progress bar, then
// History. The order of calls is:
//
//   OnTrainBegin; in each epoch: OnEpochBegin, OnTrainBatchBegin and OnTrainBatchEnd for each batch, the test calls of
//   the validation (OnTestBegin, OnTestBatchBegin, OnTestBatchEnd, OnTestEnd), OnEpochEnd; at the end OnTrainEnd.
//
// Evaluate makes only the test calls. If a callback throws, Fit ends and throws the same error.
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

// The functions of a model that callbacks may call while it is trained. Trainer implements it. The calls may run steps,
// so only the training thread may make them.
class COHORT_EXPORT CallbackHost {
 public:
  virtual ~CallbackHost() = default;
  // Makes the training end after the current batch.
  virtual void StopTraining() = 0;
  virtual bool stop_training() const = 0;
  // Returns true in the process that writes files and prints messages, if several processes train together.
  virtual bool is_chief() const { return true; }
  // Waits until all processes that train together have made the call.
  virtual void AwaitWorkers() {}
  // The optimizer's learning rate for the next update. Set throws FailedPreconditionError if the rate follows a
  // schedule.
  virtual double GetLearningRate() = 0;
  virtual void SetLearningRate(double rate) = 0;
  virtual bool has_learning_rate_schedule() const = 0;
  virtual int64_t Iterations() = 0;  // updates so far
  // All weights, in the model's order.
  virtual std::vector<Tensor> GetWeights() = 0;
  virtual void SetWeights(const std::vector<Tensor>& weights) = 0;
  // Returns "<layer>/<weight>" for each weight, in the order of GetWeights.
  virtual std::vector<std::string> WeightNames() const = 0;
  // Returns whether a metric improves up or down. `name` is its name in the logs without "val_". Returns kDown for
  // "loss", kNone for an unknown metric.
  virtual MetricDirection DirectionOf(const std::string& name) const = 0;
  // Save the whole model (`.keras`), or only the weights (`.weights.h5`). Throw UnimplementedError if this is not
  // possible.
  virtual void Save(const std::string& path) = 0;
  virtual void SaveWeights(const std::string& path) = 0;
  // Returns the training graph as a serialized GraphDef.
  virtual std::string SerializedGraph() = 0;
  // Returns the state of the training, as the bytes of a weights file. Call it between two batches of Fit: in
  // OnTrainBatchEnd or OnEpochEnd. The state has the weights, the optimizer's state, epoch, batch and the losses so
  // far. It also has, for each process that trains with the others, its position in the data and its metrics. All
  // processes make the call. The chief gets the bytes; the others get "".
  virtual std::string BackUpTraining();
  // Continues the training from a state of BackUpTraining, to the same end. Call it in OnTrainBegin. After OnTrainBegin
  // of all callbacks, each of them gets back its own state (Callback::RestoreState). `where` names the file that this
  // process has found. If `backup` is nullopt, there was no file: does nothing and returns false. All processes make
  // the call. Throws InvalidArgumentError if the bytes are not a backup of this model, data and number of processes, or
  // if another process has found other bytes than the chief; the error names that process. Throws DataLossError for
  // damaged bytes.
  virtual bool RestoreTraining(const std::optional<std::string>& backup, const std::string& where);
};

// Facts about the call of Fit or Evaluate, for its callbacks.
struct COHORT_EXPORT FitParams {
  int verbose = 1;          // 0 silent, 1 progress bar, 2 one line for each epoch
  int epochs = 1;           // the number of the last epoch
  int initial_epoch = 0;    // 0-based
  int64_t steps = 0;        // batches of an epoch; 0: not known (yet)
  bool is_testing = false;  // true for Evaluate, false for Fit
};

// The base of callbacks. The program and Fit share ownership. Only the training thread calls it.
class COHORT_EXPORT Callback {
 public:
  virtual ~Callback() = default;
  // Called before all other functions. `host` lives until the end of this Fit or Evaluate.
  void Attach(CallbackHost* host, const FitParams& params) {
    host_ = host;
    params_ = params;
  }
  // Sets the number of batches of an epoch, when the first epoch has shown it.
  void SetSteps(int64_t steps) { params_.steps = steps; }

  // Epochs and batches are counted from 0. OnEpochEnd may add to `logs`; the callbacks after it in the list see the
  // addition.
  virtual void OnTrainBegin() {}
  virtual void OnTrainEnd(const Logs& logs) {}
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
  // Returns a value if the callback changes the training. Processes that train together must have the same such
  // callbacks, in the same order; Fit compares them before it trains. Override it in a class that stops the training,
  // changes rates or weights, or makes a call of the host that all processes must make. nullopt: the callback only
  // observes or writes, and a process need not have it.
  virtual std::optional<Influence> influence() const { return std::nullopt; }

  // The values that a callback remembers between batches or epochs, with the name of its class. Values may have any
  // shapes.
  struct State {
    std::string kind;
    std::vector<Tensor> values;
  };
  // Returns the state that this callback needs to continue a training, or nullopt if it needs none. BackUpTraining
  // stores the states of the chief's callbacks. Callbacks with an influence have the same state in all processes.
  virtual std::optional<State> SaveState() const { return std::nullopt; }
  // Sets the state to the values of a SaveState of the same kind. It is called after OnTrainBegin. Returns false if the
  // values are invalid; Fit then throws InvalidArgumentError.
  virtual bool RestoreState(const std::vector<Tensor>& values) { return false; }
  // Returns true if Fit must call it after the callbacks of the list that return false.
  virtual bool comes_last() const { return false; }

 protected:
  CallbackHost& host() const { return *host_; }
  const FitParams& params() const { return params_; }

 private:
  CallbackHost* host_ = nullptr;
  FitParams params_;
};

using CallbackPtr = std::shared_ptr<Callback>;

// Calls all callbacks of a list, in order. Fit owns it. It does not own the host.
class COHORT_EXPORT CallbackList final : public Callback {
 public:
  explicit CallbackList(std::vector<CallbackPtr> callbacks) : callbacks_(std::move(callbacks)) {}
  void AttachAll(CallbackHost* host, const FitParams& params);
  void SetStepsOfAll(int64_t steps);
  // Returns the states of all callbacks that have one, in order.
  std::vector<State> SaveStates() const;
  // Gives each callback the first state of its kind that no earlier callback has taken. Logs a warning for a callback
  // without a state, which begins anew. Throws InvalidArgumentError that names `where` and the kind if values are
  // invalid.
  void RestoreStates(const std::vector<State>& states, const std::string& where);

  void OnTrainBegin() override;
  void OnTrainEnd(const Logs& logs) override;
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
