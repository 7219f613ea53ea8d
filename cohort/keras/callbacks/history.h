// History: the logs of every epoch, which Fit returns. It can draw them as learning curves.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/callbacks/logs.h"

namespace cohort::keras {

// The logs of one Fit. The caller owns it. Not thread-safe.
class COHORT_EXPORT History {
 public:
  // Adds one epoch. The value of a name is NaN in the epochs whose logs do not have that name.
  void Add(int epoch, const Logs& logs);

  const std::vector<int>& epochs() const { return epochs_; }  // 0-based
  std::vector<std::string> names() const;                     // in the order of first appearance
  bool Has(std::string_view name) const;
  // Returns one value for each epoch. Throws NotFoundError that lists all names if there is no such name.
  const std::vector<double>& operator[](std::string_view name) const;

  // data_waits() has the time for which the training has waited for batches, for each epoch. It is almost 0 if the
  // input is fast enough.
  void AddDataWait(std::chrono::nanoseconds wait) { data_waits_.push_back(wait); }
  const std::vector<std::chrono::nanoseconds>& data_waits() const { return data_waits_; }

  // Returns true if SIGTERM has interrupted the training, which is not done then.
  bool interrupted() const { return interrupted_; }
  void SetInterrupted() { interrupted_ = true; }

  // Writes an SVG file with one chart for each quantity: its training curve and its "val_" curve over the epochs (from
  // 1). The file refers to no other files. Throws FailedPreconditionError if there are no epochs, InvalidArgumentError
  // if `path` does not end in ".svg", and what core/file.h throws.
  void Plot(const std::string& path) const;
  // Returns the text of the file that Plot writes. Throws FailedPreconditionError if there are no epochs.
  std::string Svg() const;

 private:
  std::vector<int> epochs_;
  std::vector<std::pair<std::string, std::vector<double>>> values_;
  std::vector<std::chrono::nanoseconds> data_waits_;
  bool interrupted_ = false;
};

// Adds each epoch to `history`, which must outlive the callback. Fit owns the callback.
class COHORT_EXPORT HistoryCallback final : public Callback {
 public:
  explicit HistoryCallback(History* history) : history_(history) {}
  void OnEpochEnd(int epoch, Logs& logs) override { history_->Add(epoch, logs); }

 private:
  History* history_;
};

}  // namespace cohort::keras
