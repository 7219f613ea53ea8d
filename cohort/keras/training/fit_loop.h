// The loops over batches of Fit and Evaluate. Internal to keras/.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/training/batches.h"
#include "cohort/keras/training/model_engine.h"

namespace cohort::keras {

// The means of the losses over a pass. Each batch is weighted by its number of examples. Used by one thread.
class RunningLosses {
 public:
  explicit RunningLosses(const StepFunction& step) : step_(&step), sums_(1 + step.output_loss_names().size()) {}
  void Add(const StepFunction::Result& result);
  // Returns losses and metrics so far. If `of_all` is true, the metrics count the batches of all processes, and all
  // processes must make the call together. Otherwise the metrics count only the batches of this process.
  Logs Read(bool of_all) const;
  // Returns the state for a training that will be continued: the number of examples, then the sums.
  std::vector<double> Save() const;
  // Sets the state to what Save has returned. Returns false, and changes nothing, if `saved` is of a model with another
  // number of losses.
  bool Restore(const std::vector<double>& saved);

 private:
  const StepFunction* step_;
  std::vector<double> sums_;
  double examples_ = 0;
};

// The callbacks and conditions of one pass over the data.
struct PassEvents {
  Callback* callbacks;
  bool testing;       // true: the callbacks' functions for tests are called, not those for training
  std::string where;  // for errors: "epoch 3"
  std::function<bool()> stop = [] { return false; };  // when it returns true, the pass ends after the current batch
  // Several processes stop after the same batch: if one of them has *wants_stop, *stop_agreed becomes true in all of
  // them after their next step. Both or none of them are null.
  const std::atomic<bool>* wants_stop = nullptr;
  bool* stop_agreed = nullptr;
  // Called after each step, before the callbacks for the batch's end. Fit makes its replica checks in it. May be empty.
  std::function<void()> after_step = {};
};

// Calls `work` and returns its result. If `work` throws an Error, throws an error with the same code and with the place
// added to the message: "... (in epoch 1, batch 2)". `batch` counts from 0.
template <typename Work>
auto WithPlace(const std::string& where, int64_t batch, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(error.what(), " (in ", where, ", batch ", batch + 1, ")"));
  }
}

// Runs `step` on the batches of one epoch, until the epoch ends or events.stop() is true. Returns loss and metrics.
// *steps is the number of batches of the epoch that are done; each batch adds 1. If *steps is not 0 at first, the pass
// continues an epoch that was begun before, and keeps the values of `running` and of the metrics. Throws what a step
// throws, with `where` and the batch's number added.
// If the step runs on remote workers, queues the steps of the epoch, a limited number ahead of the workers, and then
// waits until all have ended. If events.stop() is true it queues no more. Calls no functions of the callbacks for
// batches, because batches have no order then.
Logs RunPass(const StepFunction& step, Batches& batches, const PassEvents& events, RunningLosses& running,
             int64_t* steps);

// The state of one call of Fit, which owns it.
struct FitProgress {
  Batches& batches;
  CallbackList& callbacks;
  RunningLosses running;
  int64_t first_pass;  // number of the pass over the data in epoch initial_epoch; the order of a shuffle depends on it
  int epoch;           // the current epoch; in OnEpochEnd the next epoch
  int64_t batch = 0;   // batches of the epoch that are done
  // For a continued training: the states of the callbacks, and the name of the file that they are from.
  std::optional<std::vector<Callback::State>> restored_states = {};
  std::string restored_from = {};
  // With a ParameterServerStrategy: the number of this training (EarlierTraining), 0 if no backup knows it.
  int64_t number = 0;
};

}  // namespace cohort::keras
