// MonitoredSession. The constructor calls Begin of the hooks, finalizes the graph and opens the first session (Create).
// Run asks the hooks for their feeds and fetches, runs one step for all of them, and gives each hook its values
// (RunOnce). Around that, Recovering makes a new session and repeats the work while tasks are lost. Finish ends it all.
#include "cohort/train/monitored_session.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/train/clock.h"
#include "cohort/train/hooks/hook_values.h"

namespace cohort::train {
namespace {

constexpr const char* kLog = "monitored session";
constexpr std::chrono::milliseconds kFirstRetry{100};
constexpr std::chrono::milliseconds kLongestRetry{2000};

std::string MessageOfCurrent() { return Status::FromCurrentException().ToString(); }

// Returns whether the error means that a task was lost, so that a new session may succeed.
bool IsLoss(const Error& error) { return error.code() == Code::kAborted || error.code() == Code::kUnavailable; }

// Calls a function of a hook. If it throws, the log says which one it was.
template <typename Function>
auto CallHook(const SessionRunHook& hook, const char* function, const Function& call) {
  try {
    return call();
  } catch (...) {
    LogError(kLog, "the hook ", hook.name(), " failed in ", function, ": ", MessageOfCurrent());
    throw;
  }
}

// Adds what a hook asks for to the request. Throws InvalidArgumentError if a value is fed already.
void AddArgs(SessionRunArgs args, const SessionRunHook& hook, std::vector<std::string>& feeders, RunRequest& request) {
  for (auto& [feed, value] : args.feeds) {
    for (size_t i = 0; i < request.feeds.size(); ++i) {
      if (!(request.feeds[i].first == feed)) continue;
      throw InvalidArgumentError(StrCat("[monitored session] Same tensor is fed twice: ", feed.name(), " is fed by ",
                                        feeders[i], " and by the hook ", hook.name()));
    }
    feeders.push_back("the hook " + hook.name());
    request.feeds.emplace_back(feed, std::move(value));
  }
  request.fetches.insert(request.fetches.end(), args.fetches.begin(), args.fetches.end());
  request.targets.insert(request.targets.end(), args.targets.begin(), args.targets.end());
  request.options.timeout = std::max(request.options.timeout, args.options.timeout);
  request.options.trace_level = std::max(request.options.trace_level, args.options.trace_level);
}

}  // namespace

MonitoredSession::MonitoredSession(Graph& graph, std::unique_ptr<SessionCreator> creator,
                                   MonitoredSessionOptions options)
    : graph_(graph),
      creator_(std::move(creator)),
      options_(std::move(options)),
      id_(NewIncarnation()),
      exceptions_before_(std::uncaught_exceptions()) {
  if (options_.stops_on_sigterm) {
    stop_signal_.emplace([this] {
      signalled_ = true;
      if (creating_) StopBySignal();
    });
    // A step that has begun goes on; but none begins while a task is missing.
    creator_->SetInterrupted([this] {
      return signalled_ ? Status(Code::kCancelled, StrCat("[monitored session] got ", StopSignal::Name())) : Status();
    });
  }
  for (const auto& hook : options_.hooks) {
    if (hook == nullptr) throw InvalidArgumentError("[monitored session] expected hooks; got a null pointer");
    CallHook(*hook, "Begin", [&] { hook->Begin(graph); });
  }
  if (!creator_->scaffold().finalized()) {
    creator_->scaffold().Finalize(graph, options_.writes, Scaffold::Summaries::kWithTheStep);
  }
  Create();
}

MonitoredSession::~MonitoredSession() {
  if (closed_) return;
  try {
    Finish(std::uncaught_exceptions() == exceptions_before_);
  } catch (...) {
    LogError(kLog, "the session has ended with an error, which Close would throw: ", MessageOfCurrent());
  }
}

void MonitoredSession::CreateOnce() {
  session_ = creator_->CreateSession(graph_, coordinator_);
  for (const auto& hook : options_.hooks) {
    CallHook(*hook, "AfterCreateSession", [&] { hook->AfterCreateSession(*session_, coordinator_); });
  }
}

void MonitoredSession::Create() {
  creating_ = true;
  if (signalled_) StopBySignal();
  const Clock::time_point deadline = DeadlineAfter(creator_->options().max_wait);
  std::chrono::milliseconds pause = kFirstRetry;
  for (;;) {
    try {
      CreateOnce();
      creating_ = false;
      return;
    } catch (const Error& error) {
      DropSession();
      if (!options_.recover || !IsLoss(error)) throw;
      if (Clock::now() + pause >= deadline) {
        throw DeadlineExceededError(StrCat("[monitored session] expected a session within ",
                                           SecondsOf(creator_->options().max_wait),
                                           " s; the latest try failed: ", error.what()));
      }
      LogWarning(kLog, "no session could be made; the next try is in ", SecondsOf(pause), " s: ", error.what());
    }
    if (signalled_) StopBySignal();
    if (coordinator_.WaitForStop(Clock::now() + pause)) {
      throw CancelledError("[monitored session] asked to stop while a session was made");
    }
    pause = std::min(2 * pause, kLongestRetry);
  }
}

void MonitoredSession::StopBySignal() {
  if (coordinator_.should_stop()) return;  // the training has come to its own end
  stopped_by_signal_ = true;
  coordinator_.RequestStop();
}

void MonitoredSession::DropSession() {
  if (session_ == nullptr) return;
  const bool stop = coordinator_.should_stop();
  const std::exception_ptr error = coordinator_.exception();
  coordinator_.RequestStop();
  session_->Close();  // ends the steps for which the loops wait
  coordinator_.Join();
  session_.reset();
  coordinator_.Reset();
  if (stop) coordinator_.RequestStop(error);
}

RunResults MonitoredSession::Recovering(const std::function<RunResults()>& work) {
  if (closed_) throw FailedPreconditionError("[monitored session] Run called after Close");
  if (should_stop()) throw FailedPreconditionError("[monitored session] Run called even after should_stop requested.");
  for (std::chrono::milliseconds pause{0};; pause = std::clamp(2 * pause, kFirstRetry, kLongestRetry)) {
    try {
      if (session_ == nullptr) Create();
      return work();
    } catch (const Error& error) {
      // Such as a step that waits for other workers, which SIGTERM stops, too: the training has not come to its end.
      if (signalled_ && error.code() == Code::kOutOfRange) StopBySignal();
      if (!options_.recover || !IsLoss(error)) throw;
      LogWarning(kLog, "a task was lost: ", error.what(), "\n  The session is closed, and a new one repeats the step");
    }
    DropSession();
    if (coordinator_.WaitForStop(Clock::now() + pause)) {
      if (const std::exception_ptr error = coordinator_.exception()) std::rethrow_exception(error);
      throw CancelledError("[monitored session] asked to stop while a task was lost");
    }
  }
}

RunResults MonitoredSession::RunOnce(const RunRequest& original) {
  SessionRunContext context(original, *session_);
  RunRequest request = original;
  std::vector<std::string> feeders(request.feeds.size(), "the program");
  std::vector<size_t> fetch_begin;
  fetch_begin.reserve(options_.hooks.size() + 1);
  for (const auto& hook : options_.hooks) {
    fetch_begin.push_back(request.fetches.size());
    AddArgs(CallHook(*hook, "BeforeRun", [&] { return hook->BeforeRun(context); }), *hook, feeders, request);
  }
  fetch_begin.push_back(request.fetches.size());
  RunResults results = session_->Run(request.feeds, request.fetches, request.targets, request.options);
  NoteStep(request, results);
  CallAfterRun(context, request, results, fetch_begin);
  if (context.stop_requested()) coordinator_.RequestStop();
  results.Truncate(original.fetches.size());
  return results;
}

void MonitoredSession::NoteStep(const RunRequest& request, const RunResults& results) {
  const ops::Variable& step = creator_->scaffold().global_step();
  if (!creator_->is_chief() || !step.valid()) return;
  const auto at = std::find(request.fetches.begin(), request.fetches.end(), step.value());
  if (at != request.fetches.end())
    creator_->NoteStep(StepOf(results[static_cast<size_t>(at - request.fetches.begin())]));
}

void MonitoredSession::CallAfterRun(SessionRunContext& context, const RunRequest& request, const RunResults& results,
                                    const std::vector<size_t>& fetch_begin) {
  for (size_t i = 0; i < options_.hooks.size(); ++i) {
    SessionRunHook& hook = *options_.hooks[i];
    SessionRunValues values;
    if (fetch_begin[i] < fetch_begin[i + 1]) {
      const auto begin = static_cast<std::ptrdiff_t>(fetch_begin[i]);
      const auto end = static_cast<std::ptrdiff_t>(fetch_begin[i + 1]);
      values.results = RunResults(
          std::vector<Tensor>(results.begin() + begin, results.begin() + end),
          std::make_shared<std::vector<Output>>(request.fetches.begin() + begin, request.fetches.begin() + end));
    }
    values.results.set_run_metadata(results.shared_run_metadata());
    for (;;) {
      try {
        CallHook(hook, "AfterRun", [&] { hook.AfterRun(context, values); });
        break;
      } catch (const Error& error) {
        // The step itself has succeeded, so only this call is repeated.
        if (!options_.recover || !IsLoss(error)) throw;
      }
      DropSession();
      Create();
      context.session_ = session_.get();
    }
  }
}

RunResults MonitoredSession::Run(const FeedList& feeds, const std::vector<Output>& fetches,
                                 const std::vector<Node*>& targets, const RunOptions& options) {
  RunRequest request{feeds, fetches, targets, options};
  const bool may_repeat = options_.recover && !creator_->options().master.empty() && !options.closure.valid();
  int64_t state = creator_->state();
  if (may_repeat) request.options.closure = {.coordinator = id_, .number = ++calls_, .lowest = calls_};
  return Recovering([&] {
    if (const int64_t now = creator_->state(); may_repeat && now != state) {
      state = now;
      // The variables have lost the updates of the first try, so this one makes all.
      request.options.closure = {.coordinator = id_, .number = ++calls_, .lowest = calls_};
    }
    return RunOnce(request);
  });
}

RunResults MonitoredSession::StepContext::RunWithHooks(const FeedList& feeds, const std::vector<Output>& fetches,
                                                       const std::vector<Node*>& targets, const RunOptions& options) {
  return monitored_.RunOnce({feeds, fetches, targets, options});
}

RunResults MonitoredSession::RunStepFn(const std::function<RunResults(StepContext&)>& step_fn) {
  return Recovering([&] {
    StepContext context(*this);
    return step_fn(context);
  });
}

void MonitoredSession::RunUntilStop(const std::function<void(MonitoredSession&)>& body) {
  try {
    while (!should_stop()) body(*this);
  } catch (const OutOfRangeError& end) {
    LogInfo(kLog, "the data has ended: ", end.what());
  }
  Close();
}

bool MonitoredSession::should_stop() {
  if (closed_) return true;
  if (!coordinator_.should_stop()) {
    if (!signalled_) return false;
    StopBySignal();
  }
  if (const std::exception_ptr error = coordinator_.exception()) std::rethrow_exception(error);
  return true;
}

void MonitoredSession::Close() {
  if (!closed_) Finish(/*clean=*/true);
}

void MonitoredSession::Finish(bool clean) {
  closed_ = true;
  std::exception_ptr failure = coordinator_.exception();
  if (clean && failure == nullptr && session_ != nullptr) {
    try {
      for (const auto& hook : options_.hooks) CallHook(*hook, "End", [&] { hook->End(*session_); });
    } catch (...) {
      failure = std::current_exception();
    }
  }
  coordinator_.RequestStop();
  if (!coordinator_.AwaitEnd(options_.stop_grace)) {
    LogWarning(kLog, "a thread of the coordinator has not ended within ", SecondsOf(options_.stop_grace),
               " s; its step is cancelled");
  }
  if (session_ != nullptr) session_->Close();
  coordinator_.Join();
  session_.reset();
  if (failure == nullptr) failure = coordinator_.exception();
  if (!clean) {
    if (failure != nullptr) {
      LogWarning(kLog,
                 "beside the program's own error there was this one: ", Status::FromException(failure).ToString());
    }
    return;
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  Server* server = creator_->options().server;
  if (creator_->is_chief() && server != nullptr && !stopped_by_signal_) server->AnnounceDone();
}

}  // namespace cohort::train
