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

// After an error of the data: the steps that are queued change the weights, so the caller gets the error when they have
// ended.
void WaitForSteps(RemoteStep& remote) {
  try {
    remote.Join();
  } catch (const Error& error) {
    LogWarning("keras", "beside the error of the data a step had this one: ", error.what());
  }
}

// The most executions whose batches of this process are kept.
constexpr size_t kMostQueued = 128;

// Queues steps with batches that the workers read.
std::vector<distribute::RemoteValue> QueueSteps(const StepFunction& step, const WorkerBatches& data, int64_t steps) {
  RemoteStep& remote = *step.remote();
  const int64_t lost = remote.lost_batches();
  remote.UseBatches(data);
  std::vector<distribute::RemoteValue> queued;
  const int64_t first = step.NextStep();
  for (int64_t done = 0; done < steps;) {
    const auto now = static_cast<int>(std::min<int64_t>(step.steps_per_execution(), steps - done));
    queued.push_back(remote.Schedule(first + done, now));
    done += now;
  }
  remote.Join();
  if (const int64_t more = remote.lost_batches() - lost; more > 0) {
    LogWarning("keras", more, " batches were lost with workers that had taken them; other batches took their places");
  }
  return queued;
}

// Queues steps with the batches that this process reads.
std::vector<distribute::RemoteValue> QueueBatches(const StepFunction& step, Batches& batches) {
  RemoteStep& remote = *step.remote();
  std::vector<distribute::RemoteValue> queued;
  int64_t next = step.NextStep();
  try {
    while (true) {
      std::vector<std::vector<Tensor>> together;
      Batches::Parts parts;
      while (static_cast<int>(together.size()) < step.steps_per_execution() && batches.Next(&parts)) {
        together.push_back(parts.front());
      }
      if (together.empty()) break;
      if (queued.size() >= kMostQueued) queued[queued.size() - kMostQueued].Wait();
      queued.push_back(remote.Schedule(next, together));
      next += static_cast<int64_t>(together.size());
    }
  } catch (...) {
    WaitForSteps(remote);
    throw;
  }
  remote.Join();
  return queued;
}

Logs RunRemotePass(const StepFunction& step, Batches& batches, const PassEvents& events, RunningLosses& running,
                   int64_t* steps) {
  const WorkerBatches* data = batches.of_workers();
  std::vector<distribute::RemoteValue> queued;
  try {
    queued = data != nullptr ? QueueSteps(step, *data, batches.steps()) : QueueBatches(step, batches);
  } catch (const OutOfRangeError& error) {
    throw InvalidArgumentError(StrCat("[keras] expected at least one batch in ", events.where, "; a worker has found ",
                                      "none: ", error.what()));
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(error.what(), " (in ", events.where, ")"));
  }
  bool finite = true;
  for (const distribute::RemoteValue& execution : queued) {
    for (const StepFunction::Result& result : step.ResultsOf(execution.Fetch())) {
      running.Add(result);
      if (finite && !std::isfinite(result.losses[0])) {
        finite = false;
        WarnUnlessFinite(result.losses[0], events.where, *steps);
      }
      ++*steps;
    }
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
  if (step.remote() != nullptr) return RunRemotePass(step, batches, events, running, steps);
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
