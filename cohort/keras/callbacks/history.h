// History: the logs of every epoch, which Fit returns, and its learning curves as a picture.
#pragma once

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
  // Adds one epoch. If a name is new, or missing in this epoch, its value is NaN in the epochs without it.
  void Add(int epoch, const Logs& logs);

  const std::vector<int>& epochs() const { return epochs_; }  // 0-based
  std::vector<std::string> names() const;                     // in the order of first appearance
  bool Has(std::string_view name) const;
  // Returns one value for each epoch. Throws NotFoundError that lists all names if there is no such name.
  const std::vector<double>& operator[](std::string_view name) const;

  // Seconds that training has waited for batches, for each epoch. It is almost 0 if the input is fast enough.
  void AddDataWait(double seconds) { data_wait_seconds_.push_back(seconds); }
  const std::vector<double>& data_wait_seconds() const { return data_wait_seconds_; }

  // Writes an SVG file with one chart for each quantity: its training curve and its "val_" curve over the epochs (from
  // 1). The file needs no other files. Throws FailedPreconditionError if there are no epochs, InvalidArgumentError if
  // `path` does not end in ".svg", and what core/file.h throws.
  void Plot(const std::string& path) const;
  std::string Svg() const;

 private:
  std::vector<int> epochs_;
  std::vector<std::pair<std::string, std::vector<double>>> values_;
  std::vector<double> data_wait_seconds_;
};

// Adds each epoch to `history`, which must outlive it.
class COHORT_EXPORT HistoryCallback final : public Callback {
 public:
  explicit HistoryCallback(History* history) : history_(history) {}
  void OnEpochEnd(int epoch, Logs& logs) override { history_->Add(epoch, logs); }

 private:
  History* history_;
};

}  // namespace cohort::keras
