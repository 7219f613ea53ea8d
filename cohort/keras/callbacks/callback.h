// Callbacks: what users hang into Fit and Evaluate. The training loop calls all callbacks on its own thread, in the
// order of the list. Callbacks that keep what the others remember (comes_last) follow the others; the progress bar and
// History come at the end:
//   OnTrainBegin, then each epoch: OnEpochBegin, OnTrainBatchBegin/End for each batch, the test calls of the validation
//   (OnTestBegin, OnTestBatchEnd, OnTestEnd), OnEpochEnd; at last OnTrainEnd.
// Evaluate makes the test calls alone. What a callback throws ends Fit and reaches its caller.
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

// What callbacks may see and do of the model that is trained; Model implements it. Calls may run steps: not to be made
// from other threads.
class COHORT_EXPORT CallbackHost {
 public:
  virtual ~CallbackHost() = default;
  // Training ends after the current batch.
  virtual void StopTraining() = 0;
  virtual bool stop_training() const = 0;
  // Of several processes that train together the one that writes files and speaks to the user.
  virtual bool is_chief() const { return true; }
  // Ends when all processes that train together have made the call.
  virtual void AwaitWorkers() {}
  // The optimizer's rate for the next update. Set throws FailedPreconditionError where it follows a schedule.
  virtual double GetLearningRate() = 0;
  virtual void SetLearningRate(double rate) = 0;
  virtual bool has_learning_rate_schedule() const = 0;
  virtual int64_t Iterations() = 0;  // updates so far
  // All weights in the model's order.
  virtual std::vector<Tensor> GetWeights() = 0;
  virtual void SetWeights(const std::vector<Tensor>& weights) = 0;
  // "<layer>/<weight>" in the order of GetWeights.
  virtual std::vector<std::string> WeightNames() const = 0;
  // Of a metric by the name that logs show without "val_": kDown for "loss", kNone for one that is not known.
  virtual MetricDirection DirectionOf(const std::string& name) const = 0;
  // The whole model (`.keras`), or the weights alone (`.weights.h5`). Throws UnimplementedError where it cannot.
  virtual void Save(const std::string& path) = 0;
  virtual void SaveWeights(const std::string& path) = 0;
  // The training graph as a serialized GraphDef.
  virtual std::string SerializedGraph() = 0;
  // The training that Fit runs, between two of its batches (in OnTrainBatchEnd or OnEpochEnd), as the bytes of a
  // weights file: weights, the optimizer's state, epoch, batch, losses so far, and of each process that trains with the
  // others its position in the data and its metrics. All processes make the call; the bytes are the chief's, others get
  // none.
  virtual std::string BackUpTraining();
  // In OnTrainBegin: Fit goes on from where BackUpTraining was called, to the same end. After OnTrainBegin of all
  // callbacks each of them gets back what it remembered (Callback::SaveState). `where` names the file that
  // this process has found, none where there was no file: then nothing happens, and it is false. All processes make the
  // call. Throws InvalidArgumentError for what is no backup of this model, data and number of processes, and where
  // another process has found other bytes than the chief (it is named); DataLossError for damaged bytes.
  virtual bool RestoreTraining(const std::optional<std::string>& backup, const std::string& where);
};

struct COHORT_EXPORT FitParams {
  int verbose = 1;          // 0 silent, 1 progress bar, 2 a line an epoch
  int epochs = 1;           // the number of the last epoch
  int initial_epoch = 0;    // 0-based
  int64_t steps = 0;        // batches an epoch; 0: not known (yet)
  bool is_testing = false;  // Evaluate, not Fit
};

class COHORT_EXPORT Callback {
 public:
  virtual ~Callback() = default;
  // Before any other call. The host outlives the run of Fit or Evaluate that it is given for.
  void Attach(CallbackHost* host, const FitParams& params) {
    host_ = host;
    params_ = params;
  }
  // The number of batches an epoch, once the first epoch has shown it.
  void SetSteps(int64_t steps) { params_.steps = steps; }

  // Epochs and batches count from 0. `logs` of OnEpochEnd may be added to: what comes later in the list sees it.
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

  // What a callback does to the training itself: its class, and the options on which it depends, as text.
  struct Influence {
    std::string kind;
    std::string options;
  };
  // Processes that train together must have the same callbacks with an influence, in the same order; Fit compares them
  // before it trains. None: it watches and writes, and each process may have it or not. To be told by a class of the
  // program's own that stops the training, changes rates or weights, or makes a call of the host that all must make.
  virtual std::optional<Influence> influence() const { return std::nullopt; }

  // What the callback remembers from batch to batch or from epoch to epoch: its class, and values of any shapes.
  struct State {
    std::string kind;
    std::vector<Tensor> values;
  };
  // Returns what a training that is taken up again needs of this callback. BackUpTraining keeps it, of the chief's
  // callbacks: those with an influence remember the same at all processes. Returns nullopt if there is nothing to keep.
  virtual std::optional<State> SaveState() const { return std::nullopt; }
  // Takes back the values of a SaveState with the same kind, after OnTrainBegin. Returns false if they are not such
  // values; Fit then throws InvalidArgumentError.
  virtual bool RestoreState(const std::vector<Tensor>& values) { return false; }
  // Whether Fit calls it behind all callbacks of the list that return false.
  virtual bool comes_last() const { return false; }

 protected:
  CallbackHost& host() const { return *host_; }
  const FitParams& params() const { return params_; }

 private:
  CallbackHost* host_ = nullptr;
  FitParams params_;
};

using CallbackPtr = std::shared_ptr<Callback>;

// Calls all of a list, in order; what Fit holds. Does not own the host.
class COHORT_EXPORT CallbackList final : public Callback {
 public:
  explicit CallbackList(std::vector<CallbackPtr> callbacks) : callbacks_(std::move(callbacks)) {}
  void AttachAll(CallbackHost* host, const FitParams& params);
  void SetStepsOfAll(int64_t steps);
  // Of all callbacks that remember something, in order.
  std::vector<State> SaveStates() const;
  // Gives each callback the first state of its kind that no earlier one has taken. Warns of a callback for which there
  // is none: it begins anew. Throws InvalidArgumentError that names `where` and the kind for values that do not fit.
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

// Callbacks of functions; those that are empty do nothing.
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
