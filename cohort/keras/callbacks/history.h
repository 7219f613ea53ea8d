// History: what Fit returns - the logs of every epoch - and its learning curves as a picture.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/callbacks/logs.h"

namespace cohort::keras {

class History {
 public:
  // Adds one epoch. A name that is new, or missing this time, is NaN in the epochs that lack it.
  void Add(int epoch, const Logs& logs);

  const std::vector<int>& epochs() const { return epochs_; }  // 0-based
  std::vector<std::string> names() const;                     // in the order of first appearance
  bool Has(std::string_view name) const;
  // One value an epoch. Throws NotFoundError that lists the names there are.
  const std::vector<double>& operator[](std::string_view name) const;

  // How long training has waited for batches in each epoch. It is next to nothing if the input keeps up.
  void AddDataWait(std::chrono::nanoseconds wait) { data_waits_.push_back(wait); }
  const std::vector<std::chrono::nanoseconds>& data_waits() const { return data_waits_; }

  // Draws one chart for each quantity, with its training and its "val_" curve over the epochs (from 1), and writes them
  // as an SVG file that needs nothing else. Throws FailedPreconditionError without epochs, InvalidArgumentError for
  // another ending than .svg, and what core/file.h throws.
  void Plot(const std::string& path) const;
  std::string Svg() const;

 private:
  std::vector<int> epochs_;
  std::vector<std::pair<std::string, std::vector<double>>> values_;
  std::vector<std::chrono::nanoseconds> data_waits_;
};

// Adds each epoch to `history`, which has to outlive it.
class HistoryCallback final : public Callback {
 public:
  explicit HistoryCallback(History* history) : history_(history) {}
  void OnEpochEnd(int epoch, Logs& logs) override { history_->Add(epoch, logs); }

 private:
  History* history_;
};

}  // namespace cohort::keras
