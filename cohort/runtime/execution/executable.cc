// The steps of an executable. A step exists from its first mention, a start or a value from another task, until its
// last partition has ended. Then its object is used again for another step. Values for a step that has failed are
// ignored.
#include "cohort/runtime/execution/executable.h"

#include <algorithm>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Values of a failed step may come late; for so many failed steps they are recognised.
constexpr size_t kRememberedSteps = 4096;

}  // namespace

struct Executable::Step {
  explicit Step(const std::vector<EdgeRoute>& routes, int self) : rendezvous(routes, self) {}

  int64_t id = 0;
  bool started = false;
  bool repeat = false;
  std::vector<Tensor> args;
  std::vector<Tensor> rets;
  CancellationManager cancellation;
  StepRendezvous rendezvous;
  StepInfo info;
  std::shared_ptr<StepTrace> trace;
  StepDone done;
  std::atomic<int> partitions_left{0};
  Mutex mu;
  Status status COHORT_GUARDED_BY(mu);
};

Executable::Executable(ExecutableSpec spec, const DeviceSet& devices, std::unique_ptr<ValueSender> sender)
    : key_(spec.key),
      origin_{std::move(spec.client), spec.key.session},
      tasks_(std::move(spec.tasks)),
      self_(spec.self),
      edges_(std::move(spec.edges)),
      num_args_(spec.num_args),
      num_rets_(spec.num_rets),
      sender_(std::move(sender)) {
  for (ExecutableSpec::Part& part : spec.partitions) {
    Device* device = devices.Find(part.device);
    if (device == nullptr) throw NotFoundError(StrCat("[executable] this task has no device ", part.device));
    executors_.push_back(std::make_unique<Executor>(std::move(part.graph), *device));
  }
  runs_inline_ = executors_.size() == 1 && edges_.empty() && executors_.front()->is_synchronous();
}

Executable::~Executable() = default;

Executable::StepPtr Executable::FindStep(int64_t id) const {
  for (const StepPtr& step : steps_) {
    if (step->id == id) return step;
  }
  return nullptr;
}

const Executable::StepPtr& Executable::NewStep(int64_t id) {
  StepPtr step;
  if (pool_.empty()) {
    step = std::make_shared<Step>(edges_, self_);
  } else {
    step = std::move(pool_.back());
    pool_.pop_back();
  }
  step->id = id;
  step->started = false;
  if (!edges_.empty()) step->rendezvous.Reset(sender_.get(), id);
  if (step->cancellation.cancelled()) step->cancellation.Reset();
  steps_.push_back(std::move(step));
  return steps_.back();
}

Executable::StepPtr Executable::FindOrMakeStep(int64_t id) {
  StepPtr step = FindStep(id);
  return step != nullptr ? step : NewStep(id);
}

void Executable::RetireStep(Step* step) {
  const auto it =
      std::find_if(steps_.begin(), steps_.end(), [step](const StepPtr& held) { return held.get() == step; });
  ++ended_steps_;
  StepPtr ended = std::move(*it);
  *it = std::move(steps_.back());
  steps_.pop_back();
  if (ended.use_count() == 1) {
    pool_.push_back(std::move(ended));  // else a late value or a cancellation still looks at it
  }
  if (steps_.empty()) idle_.NotifyAll();
}

std::vector<Tensor> Executable::RunInline(int64_t id, const FillArgs& fill, const Executor::NextArgs& next) {
  Step* step;  // steps_ holds it until its end
  {
    MutexLock lock(mu_);
    cancelled_.ThrowIfError();
    step = NewStep(id).get();
    step->started = true;
  }
  fill(step->args);
  std::vector<Tensor> rets(static_cast<size_t>(num_rets_));
  step->info = {id, &step->rendezvous, &step->cancellation, step->args, rets};
  step->info.origin = &origin_;
  const Status status = executors_.front()->RunSync(step->info, next);
  if (!status.ok()) TellFailure(id);
  step->args.clear();
  {
    MutexLock lock(mu_);
    RetireStep(step);
  }
  status.ThrowIfError();
  return rets;
}

void Executable::StartStep(const StepStart& start, std::vector<Tensor> args, Executor::Mode mode, StepDone done) {
  const int64_t id = start.number;
  if (args.size() != static_cast<size_t>(num_args_)) {
    throw InvalidArgumentError(
        StrCat("[executable] step ", id, " brings ", args.size(), " fed values; ", num_args_, " are needed"));
  }
  if (start.repeat && (executors_.size() != 1 || !edges_.empty() || num_args_ != 0 || num_rets_ != 0)) {
    throw InvalidArgumentError(
        StrCat("[executable] expected a step to repeat to have one partition, no edges, no fed "
               "values and no results; step ",
               id, " has ", executors_.size(), " partitions, ", edges_.size(), " edges, ", num_args_,
               " fed values and ", num_rets_, " results"));
  }
  for (const auto& executor : executors_) executor->device().CheckProcess();
  Step* step = nullptr;  // steps_ holds it until its end
  Status cancelled;
  {
    MutexLock lock(mu_);
    cancelled = cancelled_;
    if (cancelled.ok()) {
      step = FindOrMakeStep(id).get();
      if (step->started) throw AlreadyExistsError(StrCat("[executable] step ", id, " is under way already"));
      step->started = true;
    }
  }
  if (step == nullptr) {
    done(cancelled, {});  // nothing else of the executable is used: Discard may have been called
    return;
  }
  step->args = std::move(args);
  step->rets.resize(static_cast<size_t>(num_rets_));
  step->done = std::move(done);
  step->info = {id, &step->rendezvous, &step->cancellation, step->args, step->rets};
  step->info.origin = &origin_;
  step->info.closure = start.closure;
  step->trace = start.trace;
  step->info.trace = step->trace.get();
  step->repeat = start.repeat;
  {
    MutexLock lock(step->mu);
    step->status = step->cancellation.status();
    cancelled = step->status;
  }
  cancelled.ok() ? RunPartitions(step, mode, start.next_args) : EndStep(step);
}

void Executable::DropNext() {
  MutexLock lock(mu_);  // against Discard
  for (const auto& executor : executors_) executor->DropNext();
}

void Executable::RunPartitions(Step* step, Executor::Mode mode, const Executor::NextArgs* next) {
  for (Executor::Mode now = mode;; now = Executor::Mode::kDevice, next = nullptr) {
    step->partitions_left = static_cast<int>(executors_.size()) + 1;
    // All but the first one on their devices' threads; the first one here, last, because it may run to its end.
    for (size_t i = executors_.size(); i-- > 0;) {
      executors_[i]->RunAsync(
          step->info, i == 0 ? now : Executor::Mode::kDevice,
          [this, step, mode](const Status& status) {
            if (!PartitionDone(step, status)) return;
            RunsAgain(step) ? RunPartitions(step, mode, nullptr) : EndStep(step);
          },
          i == 0 ? next : nullptr);
    }
    if (!PartitionDone(step, Status())) return;
    if (!RunsAgain(step)) return EndStep(step);
    // A step that did not wait goes on with the compute thread, because this thread may serve the network.
  }
}

bool Executable::RunsAgain(Step* step) {
  if (!step->repeat) return false;
  {
    MutexLock lock(step->mu);
    if (step->status.ok()) step->status = step->cancellation.status();
    if (!step->status.ok()) return false;
  }
  MutexLock lock(mu_);
  ++ended_steps_;
  return true;
}

bool Executable::PartitionDone(Step* step, const Status& status) {
  if (!status.ok()) {
    bool first;
    {
      MutexLock lock(step->mu);
      first = step->status.ok();
      if (first) step->status = status;
    }
    if (first) CancelOne(*step, status);
  }
  return step->partitions_left.fetch_sub(1) == 1;
}

void Executable::EndStep(Step* step) {
  Status status;
  {
    MutexLock lock(step->mu);
    status = std::exchange(step->status, Status());
  }
  step->trace = nullptr;
  StepDone done = std::exchange(step->done, nullptr);
  std::vector<Tensor> rets = std::move(step->rets);
  step->rets.clear();
  step->args.clear();
  if (!status.ok()) rets.clear();
  const bool cancelled = step->cancellation.cancelled();  // it may have been too late to stop the nodes
  if (!status.ok() || cancelled) TellFailure(step->id);
  // `done` first: while it runs the step still counts as under way, so that the executable is not freed.
  const int64_t id = step->id;
  done(status, std::move(rets));
  MutexLock lock(mu_);
  if (!status.ok()) {
    failed_.insert(id);
    if (failed_.size() > kRememberedSteps) failed_.erase(failed_.begin());
  }
  RetireStep(step);
}

void Executable::TellFailure(int64_t step) {
  if (!executors_.empty()) executors_.front()->device().resources().StepFailed(key_.session, step);
}

void Executable::Deliver(int64_t id, EdgeId edge, const Tensor& value) {
  if (edge < 0 || static_cast<size_t>(edge) >= edges_.size() || edges_[static_cast<size_t>(edge)].dst_task != self_) {
    throw InvalidArgumentError(
        StrCat("[executable] step ", id, " was sent a value for edge ", edge, ", which does not end at this task"));
  }
  StepPtr step;
  {
    MutexLock lock(mu_);
    if (failed_.count(id) > 0 || !cancelled_.ok()) return;
    step = FindOrMakeStep(id);
  }
  step->rendezvous.Send(edge, value);
}

void Executable::CancelOne(Step& step, const Status& why) {
  step.cancellation.Cancel(why);
  step.rendezvous.Abort(why);
}

void Executable::CancelStep(int64_t id, const Status& why) {
  StepPtr step;
  {
    MutexLock lock(mu_);
    step = FindStep(id);
    if (step == nullptr || !step->started) return;
  }
  CancelOne(*step, why);
}

void Executable::CancelAll(const Status& why) {
  std::vector<StepPtr> started;
  {
    MutexLock lock(mu_);
    if (cancelled_.ok()) cancelled_ = why;
    // For those that are mentioned but were never started nobody waits.
    std::erase_if(steps_, [](const StepPtr& step) { return !step->started; });
    started = steps_;
    if (steps_.empty()) idle_.NotifyAll();
  }
  for (const StepPtr& step : started) CancelOne(*step, why);
}

bool Executable::UsesTask(const std::string& task) const {
  return std::find(tasks_.begin(), tasks_.end(), task) != tasks_.end();
}

bool Executable::WaitIdle(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mu_);
  while (!steps_.empty()) {
    if (!idle_.WaitUntil(mu_, deadline) && !steps_.empty()) return false;
  }
  return true;
}

void Executable::Discard() {
  std::vector<StepPtr> pool;
  std::vector<std::unique_ptr<Executor>> executors;
  {
    MutexLock lock(mu_);
    pool.swap(pool_);
    executors.swap(executors_);
  }
}

RunningOperation Executable::OperationOf(const RunLook::Doing& doing, const std::string& device) const {
  const Node& node = *doing.node;
  RunningOperation operation{node.name(), node.op_name(), device, doing.thread, doing.wait, "", ""};
  if (doing.thread != 0) return operation;
  if (doing.wait == WaitKind::kGate) operation.what = "the update gate, which a checkpoint has closed";
  if (doing.wait == WaitKind::kValue) {
    const EdgeRoute& route = edges_.at(static_cast<size_t>(node.attr<int64_t>("edge")));
    operation.what = StrCat("the value '", route.tensor_name, "'");
    operation.peer = tasks_.at(static_cast<size_t>(route.src_task));
  }
  return operation;
}

void Executable::AppendRunning(std::vector<RunningStep>* steps) {
  MutexLock lock(mu_);
  const size_t first = steps->size();
  for (const StepPtr& step : steps_) {
    if (!step->started) continue;
    RunningStep running;
    running.session = key_.session;
    running.step = step->id;
    running.client = origin_.client.task;
    running.stamp = 1;  // 0 is that of a step that is not known
    steps->push_back(std::move(running));
  }
  if (steps->size() == first) return;
  std::vector<RunLook> looks;
  for (const auto& executor : executors_) {
    looks.clear();
    executor->LookAt(&looks);
    for (const RunLook& look : looks) {
      const auto step = std::find_if(steps->begin() + static_cast<std::ptrdiff_t>(first), steps->end(),
                                     [&](const RunningStep& running) { return running.step == look.step; });
      if (step == steps->end()) continue;
      step->stamp = step->stamp * 0x9e3779b97f4a7c15ULL + look.stamp;
      for (const RunLook::Doing& doing : look.doing) {
        step->operations.push_back(OperationOf(doing, executor->device().name()));
      }
    }
  }
}

int64_t Executable::num_ended_steps() {
  MutexLock lock(mu_);
  return ended_steps_;
}

std::vector<std::string> Executable::DescribeSteps() {
  std::vector<std::string> lines;
  MutexLock lock(mu_);
  for (const StepPtr& step : steps_) {
    const std::vector<std::string> awaited = step->rendezvous.Awaited();
    lines.push_back(awaited.empty() ? StrCat("step ", step->id, ": running")
                                    : StrCat("step ", step->id, ": waits for ", StrJoin(awaited, ", ")));
  }
  return lines;
}

}  // namespace cohort
