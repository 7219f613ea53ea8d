// Finds or builds the PreparedSignature for a call of a session (Prepare), and runs its steps. A step takes one of two
// ways. If it has one part in this process that waits for nothing, the calling thread runs it (inline_part). Otherwise
// a StepCall starts all parts and waits for them.
#include "cohort/runtime/master.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/time_limit.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/call_sites.h"
#include "cohort/runtime/program_activity.h"

namespace cohort {
namespace {

size_t HashOf(const FeedList& feeds, const std::vector<Output>& fetches, const std::vector<Node*>& targets) {
  size_t hash = feeds.size() * 31 + fetches.size();
  const auto mix = [&hash](const void* pointer, int index) {
    hash = (hash ^ (reinterpret_cast<size_t>(pointer) + static_cast<size_t>(index))) * 0x9e3779b97f4a7c15ull;
  };
  for (const auto& [feed, value] : feeds) mix(feed.node, feed.index);
  for (const Output& fetch : fetches) mix(fetch.node, fetch.index);
  for (const Node* target : targets) mix(target, -1);
  return hash;
}

bool IsFor(const Signature& signature, const FeedList& feeds, const std::vector<Output>& fetches,
           const std::vector<Node*>& targets) {
  return std::equal(signature.feeds.begin(), signature.feeds.end(), feeds.begin(), feeds.end(),
                    [](const Output& known, const auto& feed) { return known == feed.first; }) &&
         signature.fetches == fetches && signature.targets == targets;
}

}  // namespace

Master::Master(const Graph& graph, const std::string& target, const SessionConfig& config)
    : graph_(graph),
      config_(config),
      session_id_(NewIncarnation()),
      builder_(graph, config_, session_id_, SessionFactories::Global().Make(target, config)),
      progress_(ProgressLimit(config.progress_limit), [this] { return watch_.UnderWay(); }) {
  ProgramActivity::Global().Add(*this);
}

Master::~Master() { Close(); }

void Master::Close() {
  if (closed_.exchange(true)) return;
  ProgramActivity::Global().Remove(*this);
  progress_.Stop();
  std::vector<std::shared_ptr<TaskClient>> tasks;
  {
    MutexLock lock(build_mu_);
    for (const auto& [name, task] : builder_.tasks()) tasks.push_back(task);
  }
  AwaitStarts();
  for (const auto& task : tasks) task->CloseSession(session_id_);
  // The tasks have ended their steps. A task that does not answer has not.
  for (const auto& call : watch_.UnderWay()) call->Abandon(Status(Code::kCancelled, "the session was closed"));
}

Master::StartScope::StartScope(Master& master) : master_(master) {
  MutexLock lock(master.mu_);
  master.CheckOpen();
  it_ = master.starting_.insert(std::this_thread::get_id());
}

Master::StartScope::~StartScope() {
  MutexLock lock(master_.mu_);
  master_.starting_.erase(it_);
  master_.started_.NotifyAll();
}

void Master::AwaitStarts() {
  MutexLock lock(mu_);
  // Ends: a start does not wait. The callback of a step that ended at once may have called Close on this thread.
  while (starting_.size() > starting_.count(std::this_thread::get_id())) started_.Wait(mu_);
}

void Master::CheckOpen() const {
  if (closed_.load(std::memory_order_relaxed)) throw FailedPreconditionError("[session] the session is closed");
}

const PreparedSignature& Master::Prepare(const FeedList& feeds, const std::vector<Output>& fetches,
                                         const std::vector<Node*>& targets) {
  CheckOpen();
  const size_t hash = HashOf(feeds, fetches, targets);
  const auto find = [&]() -> const PreparedSignature* {
    MutexLock lock(mu_);
    const auto [begin, end] = prepared_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (IsFor(it->second->signature, feeds, fetches, targets)) return it->second.get();
    }
    return nullptr;
  };
  if (const PreparedSignature* found = find()) return *found;
  const CallScope preparing(in_call_);
  ++prepares_;
  MutexLock build_lock(build_mu_);
  CheckOpen();  // Close may have run meanwhile; the tasks would keep what is registered from now on
  if (const PreparedSignature* found = find()) return *found;
  Signature signature{{}, fetches, targets};
  for (const auto& [feed, value] : feeds) signature.feeds.push_back(feed);
  WatchGrowth();
  std::unique_ptr<PreparedSignature> built = builder_.Build(signature);
  built->master = this;
  progress_.Watch(built->inline_part);
  MutexLock lock(mu_);
  return *prepared_.emplace(hash, std::move(built))->second;
}

void Master::WatchGrowth() {
  if (growths_ == kGrowthsToTell) return;  // the log has it
  const int64_t version = graph_.version();
  if (built_version_ < 0 || version == built_version_) {
    growths_ = 0;
    version_before_growths_ = version;
  } else if (++growths_ == kGrowthsToTell) {
    LogWarning("session", "nodes were added to the graph before each of the latest ", growths_, " new runs: it has ",
               version, " nodes, ", version - version_before_growths_, " more than before them, the latest is ",
               graph_.nodes().back()->Describe(),
               ". Each such run plans and compiles the graph again, which takes longer the more nodes there are; add "
               "the nodes before the loop, and call Graph::Finalize() to make a later one an error");
  }
  built_version_ = version;
}

void Master::CheckFeeds(const PreparedSignature& prepared, const FeedValues& feeds) {
  const std::vector<Output>& wanted = prepared.signature.feeds;
  if (feeds.size() != wanted.size()) {
    throw InvalidArgumentError(
        StrCat("[session] ", feeds.size(), " values were fed; the signature has ", wanted.size(), " feeds"));
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].dtype() != wanted[i].dtype()) {
      throw InvalidArgumentError(StrCat("[session] ", wanted[i].name(), " is ", wanted[i].dtype(), "; it was fed ",
                                        feeds[i].dtype(), feeds[i].shape()));
    }
    if (!wanted[i].shape().IsCompatibleWith(feeds[i].shape())) {
      throw InvalidArgumentError(StrCat("[session] cannot feed a value of shape ", feeds[i].shape(), " for ",
                                        wanted[i].name(), ", which has shape ", wanted[i].shape()));
    }
  }
}

StepLimits Master::LimitsOf(const RunOptions& options) const {
  return {options.timeout.count() > 0 ? options.timeout : config_.operation_timeout, config_.late_step};
}

bool Master::Repeats(const PreparedSignature& prepared, const RunOptions& options, bool traced) const {
  return options.repeat_on_task && prepared.can_repeat && !traced && !options.closure.valid() &&
         LimitsOf(options).timeout.count() == 0;
}

std::shared_ptr<StepCall> Master::MakeCall(const PreparedSignature& prepared, const StepStart& step,
                                           const RunOptions& options, StepCall::Done done) const {
  const StepLimits limits = step.repeat ? StepLimits() : LimitsOf(options);  // it is not late, however long it runs
  return std::make_shared<StepCall>(prepared, step, limits, std::move(done));
}

Status Master::Failed(const PreparedSignature& prepared, int64_t step, const Status& status) const {
  if (status.code() == Code::kOutOfRange) return status;
  prepared.dump->Write(session_id_, step);
  return {status.code(), WithCallSites(graph_, status.message())};
}

std::vector<Tensor> Master::RunStep(const PreparedSignature& prepared, const FeedValues& feeds,
                                    const RunOptions& options, const std::shared_ptr<StepTrace>& trace,
                                    const Callable::NextFeeds& next) {
  CheckOpen();
  CheckFeeds(prepared, feeds);
  if (options.repeat_on_task) {
    throw InvalidArgumentError(
        "[session] expected RunOptions::repeat_on_task only with RunAsync, because Run waits for the end; got it with "
        "Run");
  }
  const int64_t step = next_step_.fetch_add(1, std::memory_order_relaxed);
  const bool has_timeout = LimitsOf(options).timeout.count() > 0;
  Executor::NextArgs next_args;
  if (next && prepared.parts.size() == 1) {
    next_args = [&] {
      const std::vector<Tensor> values = next();
      std::vector<Tensor> args;
      if (values.size() != feeds.size()) return args;
      for (const int feed : prepared.parts.front().arg_feeds) args.push_back(values[static_cast<size_t>(feed)]);
      return args;
    };
  }
  try {
    if (!has_timeout && !options.closure.valid() && trace == nullptr) {
      if (const std::shared_ptr<Executable> here = prepared.inline_part.lock()) {
        const std::vector<int>& arg_feeds = prepared.parts.front().arg_feeds;
        const auto fill = [&feeds, &arg_feeds](std::vector<Tensor>& args) {
          for (const int feed : arg_feeds) args.push_back(feeds[feed]);
        };
        return here->RunInline(step, fill, next_args);
      }
    }
    // A part that needs nobody else, or runs a loop, would keep this thread from watching the clock until it has run to
    // its end.
    const bool watch_from_outside = has_timeout && (prepared.calls_functions || !prepared.inline_part.expired());
    StepStart start{step, options.closure, trace};
    if (next_args) start.next_args = &next_args;
    const auto call = MakeCall(prepared, start, options, nullptr);
    const ProgressWatch::Scope watched(progress_, call);
    const CallScope waiting(in_call_);
    call->Start(feeds, watch_from_outside ? Executor::Mode::kDevice : Executor::Mode::kInline);
    return call->Wait();
  } catch (...) {
    const Status status = Status::FromCurrentException();
    const Status failure = Failed(prepared, step, status);
    if (failure.message() != status.message()) failure.ThrowIfError();
    throw;
  }
}

void Master::StartStep(const PreparedSignature& prepared, const FeedValues& feeds, const RunOptions& options,
                       const std::shared_ptr<StepTrace>& trace, Done done) {
  const StartScope starting(*this);
  CheckFeeds(prepared, feeds);
  const int64_t step = next_step_.fetch_add(1, std::memory_order_relaxed);
  // Close waits until it has returned, so this master and its graph are still there.
  auto ended = [this, &prepared, step, done = std::move(done)](const Status& status, std::vector<Tensor> results) {
    done(status.ok() ? status : Failed(prepared, step, status), std::move(results));
  };
  StepStart start{step, options.closure, trace};
  start.repeat = Repeats(prepared, options, trace != nullptr);
  const auto call = MakeCall(prepared, start, options, std::move(ended));
  watch_.Add(call);
  call->Start(feeds, Executor::Mode::kDevice);
}

uint64_t Master::num_starts() const {
  return static_cast<uint64_t>(next_step_.load(std::memory_order_relaxed)) + prepares_.load(std::memory_order_relaxed);
}

void Master::AppendWork(Work* work) const {
  work->in_call = work->in_call || in_call_ > 0;
  for (auto& call : watch_.UnderWay()) work->started.push_back(std::move(call));
  MutexLock lock(mu_);
  for (const auto& [hash, prepared] : prepared_) {
    if (auto part = prepared->inline_part.lock()) work->inline_parts.push_back(std::move(part));
  }
}

void Master::CancelStarted(const Status& why) {
  for (const auto& call : watch_.UnderWay()) call->Cancel(why);
}

std::vector<DeviceAttributes> Master::ListDevices() {
  std::vector<DeviceAttributes> devices;
  MutexLock lock(build_mu_);
  for (const auto& [name, task] : builder_.tasks()) {
    devices.insert(devices.end(), task->devices().begin(), task->devices().end());
  }
  return devices;
}

}  // namespace cohort
