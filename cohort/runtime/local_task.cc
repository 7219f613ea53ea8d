#include "cohort/runtime/local_task.h"

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/execution/executable_checks.h"

namespace cohort {
namespace {

// A cancelled step ends as soon as its running kernels do.
constexpr std::chrono::seconds kIdleTimeout{60};

}  // namespace

LocalTask::LocalTask(ClientId self, std::shared_ptr<const DeviceSet> devices, std::shared_ptr<TaskResources> resources,
                     SenderMaker make_sender)
    : self_(std::move(self)),
      devices_(std::move(devices)),
      resources_(std::move(resources)),
      make_sender_(std::move(make_sender)) {
  for (const auto& device : devices_->devices()) attributes_.push_back(device->attributes());
}

LocalTask::~LocalTask() { CloseAll(Status(Code::kCancelled, StrCat("[task] ", name(), " ends"))); }

void LocalTask::Register(ExecutableSpec spec) {
  const ExecutableKey key = spec.key;
  CheckExecutableSpec(spec);
  if (spec.client == ClientId()) spec.client = self_;
  std::unique_ptr<ValueSender> sender = make_sender_ ? make_sender_(spec) : nullptr;
  auto executable = std::make_shared<Executable>(std::move(spec), *devices_, std::move(sender));
  MutexLock lock(mu_);
  if (!ended_.ok()) throw UnavailableError(HasEnded());
  if (!executables_.emplace(key, std::move(executable)).second) {
    throw AlreadyExistsError(StrCat("[task] ", name(), " has executable ", key.id, " of session ", key.session));
  }
}

std::shared_ptr<Executable> LocalTask::Find(const ExecutableKey& key) const {
  MutexLock lock(mu_);
  const auto it = executables_.find(key);
  return it == executables_.end() ? nullptr : it->second;
}

void LocalTask::StartStep(const ExecutableKey& key, const StepStart& step, std::vector<Tensor> args,
                          Executor::Mode mode, StepDone done) {
  std::shared_ptr<Executable> executable = Find(key);
  if (executable == nullptr) {
    done(UnknownExecutable(key), {});
    return;
  }
  Executable* raw = executable.get();
  try {
    // The closure keeps the executable until the step has ended, whatever becomes of the session.
    raw->StartStep(step, std::move(args), mode,
                   [executable = std::move(executable), done](const Status& status, std::vector<Tensor> rets) {
                     done(status, std::move(rets));
                   });
  } catch (...) {
    done(Status::FromCurrentException(), {});
  }
}

std::string LocalTask::HasEnded() const { return StrCat("[task] ", name(), " has ended: ", ended_.message()); }

Status LocalTask::UnknownExecutable(const ExecutableKey& key) const {
  MutexLock lock(mu_);
  if (!ended_.ok()) return Status(Code::kUnavailable, HasEnded());
  return Status(Code::kAborted, StrCat("[task] ", name(), " does not know executable ", key.id, " of session ",
                                       key.session, ": the task was restarted or the session's lease ended"));
}

void LocalTask::CancelStep(const ExecutableKey& key, int64_t step, const Status& why) {
  if (const auto executable = Find(key)) executable->CancelStep(step, why);
  resources_->resources.StepFailed(key.session, step);  // the step may have ended here before it failed elsewhere
}

StepReport LocalTask::AskAboutStep(const ExecutableKey& key, int64_t step, bool with_stacks,
                                   std::chrono::steady_clock::time_point /*deadline*/) {
  return ReportOn(key.session, step, name(), RunningSteps(), with_stacks);
}

std::weak_ptr<Executable> LocalTask::FindInline(const ExecutableKey& key) const {
  const auto executable = Find(key);
  return executable != nullptr && executable->runs_inline() ? executable : nullptr;
}

void LocalTask::DropNext(const ExecutableKey& key) const {
  if (const auto executable = Find(key)) executable->DropNext();
}

void LocalTask::Deliver(const ExecutableKey& key, int64_t step, EdgeId edge, const Tensor& value) {
  if (const auto executable = Find(key)) executable->Deliver(step, edge, value);
}

void LocalTask::CloseExecutables(const std::function<bool(const ExecutableKey&)>& which, const Status& why) {
  std::vector<std::shared_ptr<Executable>> closed;
  {
    MutexLock lock(mu_);
    for (auto it = executables_.begin(); it != executables_.end();) {
      if (which(it->first)) {
        closed_steps_ += it->second->num_ended_steps();
        closed.push_back(std::move(it->second));
        it = executables_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& executable : closed) executable->CancelAll(why);
  for (const auto& executable : closed) {
    if (executable->WaitIdle(kIdleTimeout)) {
      executable->Discard();
    } else {
      LogError("task", name(), ": a kernel does not end after its session was closed:\n  ",
               StrJoin(executable->DescribeSteps(), "\n  "));
    }
  }
}

void LocalTask::CloseSession(uint64_t session) {
  CloseExecutables([session](const ExecutableKey& key) { return key.session == session; },
                   Status(Code::kCancelled, "the session was closed"));
  resources_->resources.SessionEnded(session);
}

void LocalTask::CloseAll(const Status& why) {
  {
    MutexLock lock(mu_);
    if (ended_.ok()) ended_ = why;
  }
  CloseExecutables([](const ExecutableKey&) { return true; }, why);
}

void LocalTask::TaskLost(const std::string& task, const Status& why) {
  std::vector<std::shared_ptr<Executable>> affected;
  {
    MutexLock lock(mu_);
    for (const auto& [key, executable] : executables_) {
      if (executable->UsesTask(task)) affected.push_back(executable);
    }
  }
  for (const auto& executable : affected) executable->CancelAll(why);
}

void LocalTask::ResetContainer(const std::string& container) { resources_->resources.Clear(container); }

std::vector<std::string> LocalTask::DescribeSteps() const {
  std::vector<std::string> lines;
  MutexLock lock(mu_);
  for (const auto& [key, executable] : executables_) {
    for (const std::string& line : executable->DescribeSteps()) lines.push_back(line);
  }
  return lines;
}

std::vector<RunningStep> LocalTask::RunningSteps() {
  std::vector<std::shared_ptr<Executable>> executables;
  {
    MutexLock lock(mu_);
    for (const auto& [key, executable] : executables_) executables.push_back(executable);
  }
  MutexLock lock(seen_mu_);
  std::vector<RunningStep> steps;
  for (const auto& executable : executables) executable->AppendRunning(&steps);
  const auto now = RunningStep::Clock::now();
  std::map<std::pair<uint64_t, int64_t>, Seen> seen;
  for (RunningStep& step : steps) {
    const auto known = seen_.find({step.session, step.step});
    Seen& mine = seen[{step.session, step.step}];
    mine = known == seen_.end() ? Seen{now, now, step.stamp} : known->second;
    if (mine.stamp != step.stamp) mine.progress = now;
    mine.stamp = step.stamp;
    step.since = mine.since;
    step.progress = mine.progress;
  }
  seen_ = std::move(seen);
  return steps;
}

std::map<uint64_t, LocalTask::SessionHere> LocalTask::Sessions() const {
  std::map<uint64_t, SessionHere> sessions;
  MutexLock lock(mu_);
  for (const auto& [key, executable] : executables_) {
    SessionHere& session = sessions[key.session];
    session.client = executable->client().task;
    ++session.executables;
  }
  return sessions;
}

int64_t LocalTask::num_steps() const {
  MutexLock lock(mu_);
  int64_t steps = closed_steps_;
  for (const auto& [key, executable] : executables_) steps += executable->num_ended_steps();
  return steps;
}

size_t LocalTask::num_executables() const {
  MutexLock lock(mu_);
  return executables_.size();
}

}  // namespace cohort
