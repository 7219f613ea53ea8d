#include "cohort/keras/training/fit_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cohort/core/logging.h"

namespace cohort::keras {
namespace {

void WarnUnlessFinite(float loss, const std::string& where, int64_t index) {
  LogWarning("keras", "the loss is ", loss, " in ", where, ", batch ", index + 1,
             "; a smaller learning rate or clipnorm may help, the callback TerminateOnNaN ends training");
}

// Calls `queue`, which queues steps, and waits until they have ended. If `queue` throws, the steps that are queued
// still change the weights, so the caller gets the error when these have ended.
template <typename Queue>
void RunQueued(RemoteStep& remote, const Queue& queue) {
  try {
    queue();
  } catch (...) {
    const Status first = Status::FromCurrentException();
    try {
      remote.Join();
    } catch (const Error& error) {
      // Join throws an error that ends the coordinator each time.
      if (error.what() != first.message()) LogWarning("keras", "beside the next error a step had: ", error.what());
    }
    throw;
  }
  remote.Join();
}

// The most executions that are queued and have not ended. It limits the batches of this process that are kept, and the
// work that is left after SIGTERM.
constexpr size_t kMostQueued = 128;

void AwaitRoom(const std::vector<distribute::RemoteValue>& queued) {
  if (queued.size() >= kMostQueued) queued[queued.size() - kMostQueued].Wait();
}

// Makes `steps` steps with batches that the workers read, or fewer if stop() becomes true. Adds an entry to *queued for
// each execution.
void RunSteps(const StepFunction& step, const WorkerBatches& data, int64_t steps, const std::function<bool()>& stop,
              std::vector<distribute::RemoteValue>* queued) {
  RemoteStep& remote = *step.remote();
  const int64_t lost = remote.lost_batches();
  remote.UseBatches(data);
  // The closures are made before the first step runs, because the program's step function may throw.
  const int each = step.steps_per_execution();
  if (steps >= each) remote.Prepare(/*of_workers=*/true, each);
  if (steps % each != 0) remote.Prepare(/*of_workers=*/true, static_cast<int>(steps % each));
  const int64_t first = step.NextStep();
  RunQueued(remote, [&] {
    for (int64_t done = 0; done < steps && !stop(); done += each) {
      AwaitRoom(*queued);
      queued->push_back(remote.Schedule(first + done, static_cast<int>(std::min<int64_t>(each, steps - done))));
    }
  });
  if (const int64_t more = remote.lost_batches() - lost; more > 0) {
    LogWarning("keras", more, " batches were lost with workers that had taken them; other batches took their places");
  }
}

// Makes steps with the batches that this process reads, until they or the epoch end or stop() becomes true. Adds an
// entry to *queued for each execution.
void RunBatches(const StepFunction& step, Batches& batches, const std::function<bool()>& stop,
                std::vector<distribute::RemoteValue>* queued) {
  RemoteStep& remote = *step.remote();
  int64_t next = step.NextStep();
  RunQueued(remote, [&] {
    while (!stop()) {
      std::vector<std::vector<Tensor>> together;
      Batches::Parts parts;
      while (static_cast<int>(together.size()) < step.steps_per_execution() && batches.Next(&parts)) {
        together.push_back(parts.front());
      }
      if (together.empty()) break;
      AwaitRoom(*queued);
      queued->push_back(remote.Schedule(next, together));
      next += static_cast<int64_t>(together.size());
    }
  });
}

// Returns whether a worker is at the end of its data, which are repeated: then there is no batch at all. An op of a
// step may throw an OutOfRangeError, too; if a step has succeeded, there are batches.
bool FindsNoBatch(const std::vector<distribute::RemoteValue>& queued) {
  return !queued.empty() && std::none_of(queued.begin(), queued.end(), [](const distribute::RemoteValue& execution) {
    if (execution.status() != distribute::RemoteValueStatus::kReady) return false;
    try {
      execution.Fetch();
      return true;
    } catch (const Error&) {
      return false;
    }
  });
}

Logs RunRemotePass(const StepFunction& step, Batches& batches, const PassEvents& events, RunningLosses& running,
                   int64_t* steps) {
  const WorkerBatches* data = batches.of_workers();
  std::vector<distribute::RemoteValue> queued;
  try {
    if (data != nullptr)
      RunSteps(step, *data, batches.steps_of_workers() - *steps, events.stop, &queued);
    else
      RunBatches(step, batches, events.stop, &queued);
  } catch (const Error& error) {
    if (error.code() == Code::kOutOfRange && data != nullptr && FindsNoBatch(queued)) {
      throw InvalidArgumentError(StrCat("[keras] expected at least one batch in ", events.where, "; a worker has ",
                                        "found none: ", error.what()));
    }
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
  // Without a step the losses are not known.
  const double count = examples_ > 0 ? examples_ : std::numeric_limits<double>::quiet_NaN();
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
  // However the pass ends, the program may write into the batch that would have been the next one.
  struct AtEnd {
    const StepFunction& step;
    ~AtEnd() { step.DropNext(); }
  } const at_end{step};
  const StepFunction::NextParts next = [&](Batches::Parts* following) { return batches.PeekReady(following); };
  bool finite = true;
  while (batches.Next(&parts)) {
    const int64_t index = *steps;
    if (events.testing)
      events.callbacks->OnTestBatchBegin(index);
    else
      events.callbacks->OnTrainBatchBegin(index);
    const bool stops = events.wants_stop != nullptr && *events.wants_stop;
    const StepFunction::Result result = WithPlace(events.where, index, [&] { return step.Run(parts, stops, next); });
    if (result.stops && events.stop_agreed != nullptr) *events.stop_agreed = true;
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
    if (events.stop()) break;
  }
  return running.Read(/*of_all=*/true);
}

}  // namespace cohort::keras
