// The loops over batches of Fit and Evaluate. Internal to keras/.
#pragma once

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

// Loss means over a pass: each batch counts by its examples.
class RunningLosses {
 public:
  explicit RunningLosses(const StepFunction& step) : step_(&step), sums_(1 + step.output_loss_names().size()) {}
  void Add(const StepFunction::Result& result);
  // Losses and metrics so far; `of_all`: metrics of all processes, which have to ask together, else of this one.
  Logs Read(bool of_all) const;
  // For a training that is taken up again: examples, then the sums.
  std::vector<double> Save() const;
  // False where `saved` is of another model.
  bool Restore(const std::vector<double>& saved);

 private:
  const StepFunction* step_;
  std::vector<double> sums_;
  double examples_ = 0;
};

// What one pass over data tells while it runs.
struct PassEvents {
  Callback* callbacks;
  bool testing;
  std::string where;           // of errors: "epoch 3"
  const bool* stop = nullptr;  // set: the pass ends after the current batch
  std::function<void()> after_step = {};
};

// Calls `work` and returns its result. Adds the place to the message of an Error that it throws:
// "... (in epoch 1, batch 2)". `batch` counts from 0.
template <typename Work>
auto WithPlace(const std::string& where, int64_t batch, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(error.what(), " (in ", where, ", batch ", batch + 1, ")"));
  }
}

// Runs `step` on all batches of one epoch. Returns loss and metrics. `*steps`: how many batches are done; where it is
// not 0 at first the pass goes on behind them, with `running` and the metrics as they are. Throws what a step throws
// with `where` and the batch's number put after it.
Logs RunPass(const StepFunction& step, Batches& batches, const PassEvents& events, RunningLosses& running,
             int64_t* steps);

// Where a call of Fit stands.
struct FitProgress {
  Batches& batches;
  CallbackList& callbacks;
  RunningLosses running;
  int64_t first_pass;  // what the order of a shuffle follows from in epoch initial_epoch
  int epoch;           // the one that runs; in OnEpochEnd the next one
  int64_t batch = 0;   // how many batches of it are done
  // What the callbacks remembered, of a training that is taken up again, and the name of its file.
  std::optional<std::vector<Callback::State>> restored_states = {};
  std::string restored_from = {};
};

}  // namespace cohort::keras
