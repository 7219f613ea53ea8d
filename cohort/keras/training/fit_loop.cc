#include "cohort/keras/training/fit_loop.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/logging.h"

namespace cohort::keras {

void RunningLosses::Add(const StepFunction::Result& result) {
  const auto weight = static_cast<double>(result.examples);
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(result.losses[i]) * weight;
  examples_ += weight;
}

Logs RunningLosses::Read(bool of_all) const {
  const double count = examples_ > 0 ? examples_ : 1;
  Logs logs = {{"loss", sums_[0] / count}};
  for (size_t i = 1; i < sums_.size(); ++i) logs.emplace_back(step_->output_loss_names()[i - 1], sums_[i] / count);
  for (const auto& [name, value] : step_->ReadMetrics(of_all)) logs.emplace_back(name, value);
  return logs;
}

std::vector<double> RunningLosses::Save() const {
  std::vector<double> saved = {examples_};
  saved.insert(saved.end(), sums_.begin(), sums_.end());
  return saved;
}

bool RunningLosses::Restore(const std::vector<double>& saved) {
  if (saved.size() != 1 + sums_.size()) return false;
  examples_ = saved[0];
  std::copy(saved.begin() + 1, saved.end(), sums_.begin());
  return true;
}

Logs RunPass(const StepFunction& step, Batches& batches, const PassEvents& events, RunningLosses& running,
             int64_t* steps) {
  if (*steps == 0) {
    step.ResetMetrics();
    running = RunningLosses(step);
  }
  Batches::Parts parts;
  bool finite = true;
  while (batches.Next(&parts)) {
    const int64_t index = *steps;
    if (events.testing)
      events.callbacks->OnTestBatchBegin(index);
    else
      events.callbacks->OnTrainBatchBegin(index);
    const StepFunction::Result result = WithPlace(events.where, index, [&] { return step.Run(parts); });
    running.Add(result);
    if (events.after_step) events.after_step();
    const float loss = result.losses[0];
    if (finite && !std::isfinite(loss)) {
      finite = false;
      LogWarning("keras", "the loss is ", loss, " in ", events.where, ", batch ", index + 1,
                 "; a smaller learning rate or clipnorm may help, the callback TerminateOnNaN ends training");
    }
    *steps = index + 1;
    const BatchLogs logs(loss, [&running] { return running.Read(/*of_all=*/false); });
    if (events.testing)
      events.callbacks->OnTestBatchEnd(index, logs);
    else
      events.callbacks->OnTrainBatchEnd(index, logs);
    if (events.stop != nullptr && *events.stop) break;
  }
  return running.Read(/*of_all=*/true);
}

}  // namespace cohort::keras
