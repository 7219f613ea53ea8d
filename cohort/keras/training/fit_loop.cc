#include "cohort/keras/training/fit_loop.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/logging.h"

namespace cohort::keras {
namespace {

void WarnUnlessFinite(float loss, const std::string& where, int64_t index) {
  LogWarning("keras", "the loss is ", loss, " in ", where, ", batch ", index + 1,
             "; a smaller learning rate or clipnorm may help, the callback TerminateOnNaN ends training");
}

// A step that was queued.
struct QueuedStep {
  distribute::RemoteValue value;
  int64_t examples;
};

// After an error of the data: the steps that are queued change the weights, so the caller gets the error when they have
// ended.
void WaitForSteps(const StepFunction& step) {
  try {
    step.Join();
  } catch (const Error& error) {
    LogWarning("keras", "beside the error of the data a step had this one: ", error.what());
  }
}

// The most batches that are kept for steps that have not ended.
constexpr size_t kMostQueued = 128;

Logs RunRemotePass(const StepFunction& step, Batches& batches, const PassEvents& events, RunningLosses& running,
                   int64_t* steps) {
  std::vector<QueuedStep> queued;
  Batches::Parts parts;
  try {
    while (batches.Next(&parts)) {
      if (queued.size() >= kMostQueued) queued[queued.size() - kMostQueued].value.Wait();
      queued.push_back({step.Schedule(parts), parts[0][0].shape().dim(0)});
    }
  } catch (...) {
    WaitForSteps(step);
    throw;
  }
  step.Join();
  bool finite = true;
  for (const QueuedStep& one : queued) {
    const StepFunction::Result result = step.ResultOf(one.value.Fetch(), one.examples);
    running.Add(result);
    if (finite && !std::isfinite(result.losses[0])) {
      finite = false;
      WarnUnlessFinite(result.losses[0], events.where, *steps);
    }
    ++*steps;
  }
  return running.Read(/*of_all=*/true);
}

}  // namespace

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
  if (step.is_remote()) return RunRemotePass(step, batches, events, running, steps);
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
      WarnUnlessFinite(loss, events.where, index);
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
