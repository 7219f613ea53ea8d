// ClosureWorker. Loop takes what is next from the queue. Start prepares and starts a closure; OnDone ends it, or gives
// it back if the worker is lost. Recover then replaces the session. The time for which nothing has worked is measured
// from the first failure after a success, so that a task that comes and goes does not end the coordinator.
#include "cohort/distribute/coordinator/closure_worker.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"

namespace cohort::distribute {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr std::chrono::seconds kBetweenWarnings{10};

// How many calls of OnDone that start a closure this thread is in, and the most that it may be in.
thread_local int ends_open = 0;
constexpr int kMostEndsOpen = 8;

}  // namespace

uint64_t ClosureWorkers::NewRun() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

WorkersOfCoordinator ClosureWorkers::Workers() const {
  return {strategy.closure_workers(), StrCat("coordinator_", run)};
}

std::vector<std::shared_ptr<PerWorkerSource>> ClosureWorkers::Sources() {
  std::vector<std::shared_ptr<PerWorkerSource>> all;
  MutexLock lock(mu);
  std::erase_if(sources, [&](const std::weak_ptr<PerWorkerSource>& source) {
    std::shared_ptr<PerWorkerSource> held = source.lock();
    if (held == nullptr) return true;
    all.push_back(std::move(held));
    return false;
  });
  return all;
}

void ClosureWorkers::AddSource(const std::shared_ptr<PerWorkerSource>& source) {
  MutexLock lock(mu);
  sources.push_back(source);
}

ClosureWorker::ClosureWorker(ClosureWorkers& shared, int worker, std::string device, Node* ready)
    : shared_(shared), worker_(worker), device_(std::move(device)), ready_(ready), backoff_(kFirstPause) {
  ++shared_.workers_that_answer;
  thread_ = std::thread([this] { Loop(); });
}

ClosureWorker::~ClosureWorker() { thread_.join(); }

void ClosureWorker::Loop() {
  const auto me = static_cast<size_t>(worker_);
  while (true) {
    ClosurePtr closure;
    const ClosureQueue::Next next = shared_.queue.Take(me, &closure);
    if (next == ClosureQueue::Next::kStop) break;
    if (next == ClosureQueue::Next::kRun) {
      Start(closure);
    } else if (next == ClosureQueue::Next::kCancel) {
      if (session_ != nullptr) session_->CancelRuns(shared_.queue.why_cancelled());
    } else if (!Recover()) {
      break;
    }
  }
  closing_ = true;
  session_.reset();  // the ends of all closures have been called after this
}

void ClosureWorker::Start(const ClosurePtr& closure) {
  // A worker that got no closure for a while after its repair was idle and not failing.
  if (repaired_at_ && Clock::now() - *repaired_at_ > kLongestPause) failing_since_.reset();
  repaired_at_.reset();
  try {
    Prepare(closure->function);
  } catch (const Error&) {
    const Status status = Status::FromCurrentException();
    // To prepare is also to connect, and that has a deadline.
    if (IsLoss(status) || status.code() == Code::kDeadlineExceeded) return GiveBack(closure, status);
    shared_.queue.Finish(static_cast<size_t>(worker_), closure, status, {});
    return;
  }
  if (std::exchange(look_at_servers_, false) && FailIfServerIsNew(closure)) return;
  Run(session_.get(), closure);
}

// The lock is held until the error is told. So a worker that looks later, and finds nothing new, cannot tell before it
// that a variable has no value.
bool ClosureWorker::FailIfServerIsNew(const ClosurePtr& closure) {
  const DeviceName own = DeviceName::Parse(device_).Task();
  std::set<std::string> restarted;
  MutexLock lock(shared_.servers_mu);
  for (const DeviceAttributes& device : session_->ListDevices()) {
    if (own.Matches(device.name)) continue;
    const auto [known, first] = shared_.servers.try_emplace(device.name.ToString(), device.incarnation);
    if (first || known->second == device.incarnation) continue;
    known->second = device.incarnation;
    restarted.insert(device.name.Task().ToString());
  }
  if (restarted.empty()) return false;
  const Status status(
      Code::kAborted,
      StrCat("[coordinator] expected every parameter server to be the process that has got the values of the ",
             "variables; ", StrJoin(restarted, ", "), " was started again, and its variables have no values; start ",
             "this program again, which restores the newest backup or checkpoint, or restore one before the next ",
             "closure"));
  shared_.queue.Finish(static_cast<size_t>(worker_), closure, status, {});
  return true;
}

void ClosureWorker::Run(Session* session, const ClosurePtr& closure) {
  const ClosureFunction::OfWorker& nodes = closure->function->of(worker_);
  RunRequest request;
  for (size_t i = 0; i < nodes.arguments.size(); ++i) {
    request.feeds.emplace_back(nodes.arguments[i], closure->arguments[i]);
  }
  request.fetches = nodes.fetches;
  request.targets = nodes.targets;
  request.options.timeout = shared_.options.closure_timeout;
  request.options.closure = {shared_.run, closure->number, closure->lowest};
  session->RunAsync(std::move(request), [this, session, closure](const Status& status, RunResults results) {
    OnDone(session, closure, status, std::move(results));
  });
}

void ClosureWorker::Prepare(const ClosureFunctionPtr& function) {
  if (session_ == nullptr) {
    SessionConfig config = shared_.options.session;
    config.connect_timeout = shared_.options.connect_timeout;
    session_ = shared_.strategy.OpenSession(shared_.graph, config);
    initialized_.clear();
  }
  std::erase_if(initialized_, [](const auto& entry) { return entry.first.expired(); });
  for (const std::shared_ptr<PerWorkerSource>& source : shared_.Sources()) {
    int64_t& has = initialized_[source];
    const int64_t version = source->version();
    if (has == version) continue;
    const WorkerInitialization all = source->Initialization(worker_, has);
    session_->Run(all.feeds, {}, all.nodes, {.timeout = shared_.options.closure_timeout});
    has = version;
  }
  if (function == nullptr) return;
  std::erase_if(prepared_, [](const auto& known) { return known.expired(); });
  if (!prepared_.contains(function)) {
    const ClosureFunction::OfWorker& nodes = function->of(worker_);
    session_->MakeCallable(nodes.arguments, nodes.fetches, nodes.targets);
    prepared_.insert(function);
    look_at_servers_ = true;
    SayDevices();
  }
  ready_function_ = function.get();
  keeps_ready_ = function;
}

void ClosureWorker::SayDevices() {
  if (shared_.said_devices.exchange(true)) return;
  const DeviceName task = DeviceName::Parse(device_);
  int64_t gpus = 0;
  for (const DeviceAttributes& device : session_->ListDevices()) {
    gpus += task.Matches(device.name) && device.type != kHostDeviceType ? 1 : 0;
  }
  LogInfo("coordinator", "Number of GPUs on workers: ", gpus);
}

void ClosureWorker::OnDone(Session* session, const ClosurePtr& closure, const Status& status, RunResults results) {
  const bool of_close = status.code() == Code::kCancelled || status.code() == Code::kFailedPrecondition;
  if (!status.ok() && (IsLoss(status) || (closing_ && of_close))) {
    shared_.lost_elements += closure->function->of(worker_).elements;
    return GiveBack(closure, status);
  }
  worked_ = true;
  if (status.ok() && says_end_.exchange(false)) LogInfo("coordinator", device_, " works again");
  // A step may end while it is started, so that this call is inside of another one.
  const ClosureFunction* ready = ends_open < kMostEndsOpen ? ready_function_.load() : nullptr;
  const ClosurePtr next =
      shared_.queue.Finish(static_cast<size_t>(worker_), closure, status, std::move(results), ready);
  if (next == nullptr) return;
  ++ends_open;
  Run(session, next);
  --ends_open;
  shared_.queue.Started(static_cast<size_t>(worker_), next);
}

void ClosureWorker::GiveBack(const ClosurePtr& closure, const Status& why) {
  ++shared_.repeated_closures;
  shared_.queue.Return(static_cast<size_t>(worker_), closure, why);
}

bool ClosureWorker::IsLoss(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kAborted;
}

bool ClosureWorker::NamesThisWorker(const Status& status) const {
  // The first task in the message is the one that is lost; the task that has noticed it may follow.
  const std::string_view message = status.message();
  const size_t first = message.find("/job:");
  if (first == std::string_view::npos) return true;
  const DeviceName task = DeviceName::Parse(device_).Task();
  return message.substr(first).starts_with(task.ToString()) ||
         message.substr(first).starts_with(TaskName(*task.job, *task.task));
}

bool ClosureWorker::Recover() {
  const auto me = static_cast<size_t>(worker_);
  Status why = shared_.queue.why_broken(me);
  if (worked_.exchange(false)) {
    failing_since_.reset();
    backoff_ = kFirstPause;
  }
  Tell(why);
  closing_ = true;
  session_.reset();  // gives back what is still in flight
  closing_ = false;
  says_end_ = true;  // only now: a closure that was in flight may have ended well
  prepared_.clear();
  ready_function_ = nullptr;
  while (true) {
    Tell(why);
    CheckLimits(why);
    if (!shared_.queue.Pause(backoff_)) return false;
    backoff_ = std::min(kLongestPause, backoff_ * 2);
    try {
      Prepare(nullptr);
      session_->Run({}, {}, {ready_}, {.timeout = shared_.options.connect_timeout});
      break;
    } catch (const Error&) {
      why = Status::FromCurrentException();
      // If the worker answers, the next closure meets this error again, and tells it.
      if (session_ != nullptr && !IsLoss(why) && why.code() != Code::kDeadlineExceeded) break;
      session_.reset();
    }
  }
  repaired_at_ = Clock::now();
  if (counted_out_) ++shared_.workers_that_answer;
  counted_out_ = false;
  shared_.queue.Repaired(me);
  return true;
}

void ClosureWorker::Tell(const Status& why) {
  const auto now = Clock::now();
  if (!failing_since_) {
    failing_since_ = now;
  } else if (now < tell_again_) {
    return;
  }
  tell_again_ = now + kBetweenWarnings;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *failing_since_).count();
  const std::string since = seconds > 0 ? StrCat(" (for ", seconds, " s now)") : "";
  if (NamesThisWorker(why)) {
    LogWarning("coordinator", device_, " gets no closures until it can be reached again", since,
               "; its closures run elsewhere: ", why.message());
  } else {
    LogWarning("coordinator", "closures on ", device_, " wait for another task", since,
               ", and run again then: ", why.message());
  }
}

void ClosureWorker::CheckLimits(const Status& why) {
  const auto failing = Clock::now() - *failing_since_;
  if (!NamesThisWorker(why) && failing > shared_.options.ps_timeout) {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(shared_.options.ps_timeout);
    return shared_.queue.Fail(Status(
        Code::kUnavailable, StrCat("[coordinator] expected every parameter server to be reachable; for ", limit.count(),
                                   " s no closure has run on ", device_, ": ", why.message(),
                                   "; start the parameter servers and this program again, and restore a checkpoint")));
  }
  if (counted_out_ || failing <= shared_.options.worker_timeout) return;
  counted_out_ = true;
  if (--shared_.workers_that_answer > 0) return;
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(shared_.options.worker_timeout);
  shared_.queue.Fail(
      Status(Code::kUnavailable, StrCat("[coordinator] expected at least one worker; none has answered ", "for ",
                                        limit.count(), " s; the latest error of ", device_, ": ", why.message())));
}

}  // namespace cohort::distribute
