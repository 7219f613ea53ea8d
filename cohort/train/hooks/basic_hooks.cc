// The hooks that stop, log, feed and wait.
#include <cmath>
#include <sstream>

#include "cohort/core/logging.h"
#include "cohort/train/hooks/hook_values.h"
#include "cohort/train/hooks/hooks.h"

namespace cohort::train {
namespace {

bool IsNan(const Tensor& value) {
  if (value.dtype() == DType::kFloat64) return std::isnan(value.scalar<double>());
  return std::isnan(value.scalar<float>());
}

LoggingTensorHook::Values Named(const std::vector<Output>& tensors) {
  LoggingTensorHook::Values values;
  for (const Output& tensor : tensors) values.emplace_back(tensor.name(), tensor);
  return values;
}

}  // namespace

StopAtStepHook::StopAtStepHook(const Options& options) : num_steps_(options.num_steps), last_step_(options.last_step) {
  if (num_steps_.has_value() != last_step_.has_value()) return;
  throw InvalidArgumentError(
      StrCat("[StopAtStepHook] expected exactly one of num_steps and last_step; got ", num_steps_ ? "both" : "none"));
}

void StopAtStepHook::Begin(Graph& graph) { global_step_ = RequireGlobalStep(graph, name()); }

void StopAtStepHook::AfterCreateSession(Session& session, Coordinator&) {
  if (!last_step_) last_step_ = ReadStep(session, global_step_) + *num_steps_;
}

SessionRunArgs StopAtStepHook::BeforeRun(SessionRunContext&) { return {.fetches = {global_step_.value()}}; }

void StopAtStepHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t before = StepOf(values.results.front());
  still_ = before == seen_step_ ? still_ + 1 : 0;
  if (still_ == kStillRuns) {
    LogWarning("StopAtStepHook", "the global step ", global_step_.name(), " was ", before, " in the latest ", still_,
               " runs, so the session will not stop at step ", *last_step_,
               ". Give the global step to the optimizer's Minimize or ApplyGradients");
  }
  seen_step_ = before;
  // The fetched step may be that before or that after the update of this run.
  if (before + 1 >= *last_step_ && ReadStep(context.session(), global_step_) >= *last_step_) context.RequestStop();
}

SessionRunArgs NanTensorHook::BeforeRun(SessionRunContext&) { return {.fetches = {loss_}}; }

void NanTensorHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  if (!IsNan(values.results.front())) return;
  const std::string message = "Model diverged with loss = NaN.";
  if (fail_) {
    LogError("NanTensorHook", message);
    throw NanLossDuringTrainingError(StrCat("[NanTensorHook] NaN loss during training: ", loss_.name(), " is NaN"));
  }
  LogWarning("NanTensorHook", message);
  context.RequestStop();
}

StepCounterHook::StepCounterHook(Options options)
    : options_(std::move(options)),
      timer_(options_.every.steps || options_.every.interval ? options_.every : Every{.steps = 100},
             "StepCounterHook") {}

void StepCounterHook::Begin(Graph& graph) {
  global_step_ = RequireGlobalStep(graph, name());
  if (options_.summary_writer == nullptr && !options_.output_dir.empty()) {
    options_.summary_writer = std::make_shared<EventWriter>(options_.output_dir);
  }
}

SessionRunArgs StepCounterHook::BeforeRun(SessionRunContext&) { return {.fetches = {global_step_.value()}}; }

void StepCounterHook::AfterRun(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t before = StepOf(values.results.front());
  still_ = before == seen_step_ ? still_ + 1 : 0;
  seen_step_ = before;
  if (still_ == kStillRuns) {
    LogWarning("StepCounterHook", "It seems that global step (", global_step_.name(),
               ") has not been increased: it was ", before, " in the latest ", still_, " runs");
  }
  if (!timer_.ShouldTrigger(before + 1)) return;
  const int64_t step = ReadStep(context.session(), global_step_);
  if (!timer_.ShouldTrigger(step)) return;
  const std::optional<StepTimer::Since> since = timer_.Update(step);
  if (!since) return;
  const double rate = static_cast<double>(since->steps) / std::chrono::duration<double>(since->elapsed).count();
  LogInfo("train", "global_step/sec: ", rate);
  if (options_.summary_writer != nullptr) {
    options_.summary_writer->Scalar("global_step/sec", static_cast<float>(rate), step);
  }
}

void StepCounterHook::End(Session&) {
  if (options_.summary_writer != nullptr) options_.summary_writer->Flush();
}

LoggingTensorHook::LoggingTensorHook(Values tensors, Options options)
    : tensors_(std::move(tensors)), options_(std::move(options)) {
  if (tensors_.empty()) throw InvalidArgumentError("[LoggingTensorHook] expected values to log; got none");
  const bool only_at_end = options_.at_end && !options_.every.steps && !options_.every.interval;
  if (!only_at_end) timer_.emplace(options_.every, "LoggingTensorHook");
}

LoggingTensorHook::LoggingTensorHook(const std::vector<Output>& tensors, Options options)
    : LoggingTensorHook(Named(tensors), std::move(options)) {}

void LoggingTensorHook::Begin(Graph&) {
  if (timer_) timer_->Reset();
  runs_ = 0;
}

std::vector<Output> LoggingTensorHook::Fetches() const {
  std::vector<Output> fetches;
  for (const auto& [label, tensor] : tensors_) fetches.push_back(tensor);
  return fetches;
}

SessionRunArgs LoggingTensorHook::BeforeRun(SessionRunContext&) {
  asked_ = timer_ && timer_->ShouldTrigger(runs_);
  if (!asked_) return {};
  return {.fetches = Fetches()};
}

void LoggingTensorHook::AfterRun(SessionRunContext&, const SessionRunValues& values) {
  if (asked_) Log(values.results);
  ++runs_;
}

void LoggingTensorHook::End(Session& session) {
  if (options_.at_end) Log(session.Run(Fetches()));
}

void LoggingTensorHook::Log(const RunResults& results) {
  const std::optional<StepTimer::Since> since = timer_ ? timer_->Update(runs_) : std::nullopt;
  std::vector<std::pair<std::string, Tensor>> named;
  for (size_t i = 0; i < tensors_.size(); ++i) named.emplace_back(tensors_[i].first, results[i]);
  if (options_.formatter) {
    LogInfo("train", options_.formatter(named));
    return;
  }
  std::vector<std::string> parts;
  for (const auto& [label, value] : named) parts.push_back(StrCat(label, " = ", ValueText(value)));
  std::ostringstream time;
  if (since) {
    time.setf(std::ios::fixed);
    time.precision(3);
    time << " (" << std::chrono::duration<double>(since->elapsed).count() << " sec)";
  }
  LogInfo("train", StrJoin(parts, ", "), time.str());
}

SessionRunArgs FeedFnHook::BeforeRun(SessionRunContext&) { return {.feeds = feed_fn_()}; }

void GlobalStepWaiterHook::Begin(Graph& graph) { global_step_ = RequireGlobalStep(graph, name()); }

void GlobalStepWaiterHook::AfterCreateSession(Session&, Coordinator& coordinator) { coordinator_ = &coordinator; }

SessionRunArgs GlobalStepWaiterHook::BeforeRun(SessionRunContext& context) {
  if (over_) return {};
  LogInfo("train", "Waiting for global step ", wait_until_step_, " before starting training.");
  int64_t logged = 0;
  // Ends: the program, another hook or the loss of a task ends the session.
  for (;;) {
    const int64_t step = ReadStep(context.session(), global_step_);
    if (step >= wait_until_step_) break;
    if (step - logged > 1000) {
      LogInfo("train", "Waiting for global step ", wait_until_step_, " before starting training. Current step is ",
              step, ".");
      logged = step;
    }
    if (coordinator_->WaitForStop(Clock::now() + std::chrono::milliseconds(500))) break;
  }
  over_ = true;
  return {};
}

void FinalOpsHook::End(Session& session) { values_ = session.Run(feeds_, final_ops_); }

}  // namespace cohort::train
