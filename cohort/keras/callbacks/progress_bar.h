// The output of Fit and Evaluate. On a terminal it is the bar of tf.keras (up to 2.15), which overwrites itself.
// Elsewhere, for example in a file, it is plain lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/callback.h"
#include "cohort/keras/callbacks/logs.h"

namespace cohort::keras {

// The bar of one epoch. The creator owns it, and `out` must outlive it. Not thread-safe.
class COHORT_EXPORT ProgressBar {
 public:
  using Clock = std::function<double()>;  // seconds since a fixed moment; tests give a clock of their own

  struct Options {
    int64_t target = 0;                      // number of steps; 0: not known
    int verbose = 1;                         // 0 silent, 1 bar, 2 one line at the end
    bool terminal = true;                    // true: a bar that overwrites itself; false: one line at the end
    std::chrono::milliseconds interval{50};  // shortest time between two drawings
    std::string unit = "step";
  };
  ProgressBar(std::ostream& out, Options options, Clock now = {});

  void set_target(int64_t target) { options_.target = target; }
  // Returns true if Update with these arguments would print now. If it returns false, the caller need not read the logs
  // for Update.
  bool Due(int64_t current, bool finalize) const;
  // Shows that `current` steps are done. If `finalize`, draws the bar for the last time and ends the line.
  void Update(int64_t current, const Logs& logs, bool finalize = false);

 private:
  std::string Bar(int64_t current) const;
  std::string Timing(int64_t current, double now, bool last) const;
  double SecondsPerStep(int64_t current, double now) const;

  std::ostream& out_;
  Options options_;
  Clock now_;
  double start_;
  double last_drawn_ = 0;
  bool drawn_ = false;
  double after_first_ = 0;
  bool has_first_ = false;
  size_t width_ = 0;  // columns of the line that is shown now
};

// Returns for example "12s", "3:05" or "1:02:03".
COHORT_EXPORT std::string FormatDuration(double seconds);
// Returns for example "37ms/step", "2s/step" or "80us/step".
COHORT_EXPORT std::string FormatTimePerUnit(double seconds, const std::string& unit);
// Returns the value with four decimals: "0.0998". Returns it with an exponent, "1.2345e-05", if it is in
// [-0.001, 0.001].
COHORT_EXPORT std::string FormatMetricValue(double value);

// Shows a bar for every epoch of Fit, and for Evaluate. Only the thread of Fit or Evaluate calls it. It writes to
// `out`, which must outlive it; `terminal` says if `out` is a terminal. The constructor without
// arguments makes it write to std::cout. Only this constructor reads the environment variable COHORT_PROGRESS: "bar"
// means that bars are drawn, and "plain" that they are not. If it has no such value, bars are drawn if standard output
// is a terminal.
class COHORT_EXPORT ProgressBarLogger final : public Callback {
 public:
  ProgressBarLogger();
  ProgressBarLogger(std::ostream& out, bool terminal) : out_(&out), terminal_(terminal) {}

  void OnTrainBegin() override;
  void OnTrainEnd(const Logs& logs) override;
  void OnEpochBegin(int epoch) override;
  void OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) override;
  void OnEpochEnd(int epoch, Logs& logs) override;
  void OnTestBegin() override;
  void OnTestBatchEnd(int64_t batch, const BatchLogs& logs) override;
  void OnTestEnd(const Logs& logs) override;

 private:
  void Start();
  void Show(int64_t batch, const BatchLogs& logs);
  void Finish(const Logs& logs);

  std::ostream* out_;
  bool terminal_;
  std::unique_ptr<ProgressBar> bar_;
  int64_t seen_ = 0;
  bool in_fit_ = false;  // true: validation inside Fit prints nothing
};

}  // namespace cohort::keras
