// Requests get a number and wait for their answer (Ask, Answer). Steps are kept until their answer comes, until they
// are cancelled, or until the connection closes (OnLost).
#include "cohort/cluster/steps/remote_task.h"

#include "cohort/cluster/cluster_node.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/execution/step_trace.h"

namespace cohort {
namespace {

// The compilation of a partition on a busy machine. In this time the task is alive, or its connection closes.
constexpr std::chrono::minutes kRegisterTimeout{10};
// For an attempt to find out whether a lost task is back.
constexpr std::chrono::milliseconds kLookAgain{300};

uint64_t NextRequest() {
  static std::atomic<uint64_t> next{1};  // unique in the process, because all tasks of a connection share the numbers
  return next.fetch_add(1);
}

}  // namespace

void RemoteTask::FetchDevices(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(fetching_);  // not std::call_once: ThreadSanitizer cannot follow an exception out of it
  if (has_devices_) return;
  devices_ = Ask(EncodeListDevices, "list its devices", deadline).devices;
  has_devices_ = true;
}

void RemoteTask::TellTrainingDone(std::chrono::steady_clock::time_point deadline) {
  Ask(EncodeTrainingDone, "hear that training is done", deadline);
}

StepReport RemoteTask::AskHereAboutStep(uint64_t session, int64_t step, bool with_stacks,
                                        std::chrono::steady_clock::time_point deadline) {
  const auto encode = [&](uint64_t number) { return EncodeAskAboutStep({number, session, step, with_stacks}); };
  return Ask(encode, "say what it does", deadline).report;
}

StepReport RemoteTask::AskAboutStep(const ExecutableKey& key, int64_t step, bool with_stacks,
                                    std::chrono::steady_clock::time_point deadline) {
  StepReport report;
  try {
    const std::shared_ptr<ClusterNode> node = node_.lock();
    if (node == nullptr) throw UnavailableError("[cluster] this process ends");
    report = AskOverNewConnection(*node, connection_->peer().address, key.session, step, with_stacks, deadline);
  } catch (...) {
    report = StepReport();
    report.answered = Status::FromCurrentException();
  }
  report.task = name_;
  report.step.stamp += IncomingStamp(*connection_, key.session, step);  // results that are on their way
  return report;
}

StepReport AskOverNewConnection(ClusterNode& node, const std::string& address, uint64_t session, int64_t step,
                                bool with_stacks, std::chrono::steady_clock::time_point deadline) {
  const std::shared_ptr<ClusterNode> client = node.options().make_client();
  try {
    const auto task = client->steps().ClientAt(address, deadline);
    StepReport report = task->AskHereAboutStep(session, step, with_stacks, deadline);
    report.task = task->name();
    client->Stop(Status(Code::kCancelled, "the question was answered"));
    return report;
  } catch (...) {
    client->Stop(Status(Code::kCancelled, "the question was not answered"));
    throw;
  }
}

RemoteTask::Request RemoteTask::Ask(const std::function<Message(uint64_t)>& encode, const char* what,
                                    std::chrono::steady_clock::time_point deadline) {
  const uint64_t number = NextRequest();
  Request request;
  {
    MutexLock lock(mu_);
    lost_.ThrowIfError();
    requests_[number] = &request;
  }
  connection_->Send(encode(number));
  {
    MutexLock lock(mu_);
    while (!request.answered) {
      if (!answered_.WaitUntil(mu_, deadline) && !request.answered) {
        request.status =
            Status(Code::kDeadlineExceeded, StrCat("[cluster] ", name_, " (", connection_->peer().address,
                                                   ") was asked to ", what, " and has not answered in time"));
        request.answered = true;
      }
    }
    requests_.erase(number);
  }
  request.status.ThrowIfError();
  return request;
}

Status RemoteTask::LostStatus() {
  Status lost;
  {
    MutexLock lock(mu_);
    lost = lost_;
  }
  const std::shared_ptr<ClusterNode> node = node_.lock();
  if (node == nullptr) return lost;
  try {
    const auto now = std::chrono::steady_clock::now();
    const auto again = node->peers().Reach(DeviceName::Parse(name_), {.deadline = now + kLookAgain});
    const bool restarted = again->peer().incarnation != connection_->peer().incarnation;
    return Status(Code::kAborted,
                  StrCat("[cluster] ", name_, " (", again->peer().address, ") ",
                         restarted ? "was restarted (another incarnation)"
                                   : "lost the connection on which this session's steps ran",
                         ": what was under way for the session is gone; make a new session. Before: ", lost.message()));
  } catch (const Error&) {
    return lost;
  }
}

void RemoteTask::Register(ExecutableSpec spec) {
  if (connection_->closed()) LostStatus().ThrowIfError();
  const auto deadline = std::chrono::steady_clock::now() + kRegisterTimeout;
  Ask([&spec](uint64_t number) { return EncodeRegister(number, spec); }, "prepare a graph", deadline);
}

void RemoteTask::StartStep(const ExecutableKey& key, const StepStart& step, std::vector<Tensor> args,
                           Executor::Mode mode, StepDone done) {
  bool lost;
  {
    MutexLock lock(mu_);
    lost = !lost_.ok();
    if (!lost) {
      Step& started = steps_[{key, step.number}];
      started.trace = step.trace;
      started.done = std::move(done);
    }
  }
  if (lost) {
    done(LostStatus(), {});
    return;
  }
  connection_->Send(EncodeStartStep({key, step.number}, step, std::move(args)));
  Status cancelled;
  {
    MutexLock lock(mu_);
    const auto it = steps_.find({key, step.number});
    if (it != steps_.end()) {
      it->second.start_is_sent = true;
      return;
    }
    const auto early = early_cancels_.extract(StepKey{key, step.number});
    if (early.empty()) return;  // the step has ended
    cancelled = early.mapped();
  }
  connection_->Send(EncodeCancelStep({key, step.number}, cancelled));
}

void RemoteTask::CancelStep(const ExecutableKey& key, int64_t step, const Status& why) {
  StepDone done;
  bool start_is_sent = true;  // if the step has ended
  {
    MutexLock lock(mu_);
    const auto it = steps_.find({key, step});
    if (it != steps_.end()) {
      start_is_sent = it->second.start_is_sent;
      if (!start_is_sent) early_cancels_[it->first] = why;
      done = std::move(it->second.done);
      steps_.erase(it);
    }
  }
  if (start_is_sent) connection_->Send(EncodeCancelStep({key, step}, why));
  if (done) done(why, {});
}

void RemoteTask::CloseSession(uint64_t session) {
  std::shared_ptr<Connection> connection = connection_;
  if (connection->closed()) {  // the lease belongs to the process and not to the connection
    const std::shared_ptr<ClusterNode> node = node_.lock();
    const auto other = node == nullptr ? nullptr : node->peers().Find(name_);
    if (other != nullptr) connection = other;
  }
  connection->Send(EncodeCloseSession(session));
  std::vector<StepDone> open;
  {
    MutexLock lock(mu_);
    for (auto it = steps_.begin(); it != steps_.end();) {
      if (it->first.first.session == session) {
        open.push_back(std::move(it->second.done));
        it = steps_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const StepDone& done : open) done(Status(Code::kCancelled, "the session was closed"), {});
}

void RemoteTask::ResetContainer(const std::string& container) { connection_->Send(EncodeResetContainer(container)); }

void RemoteTask::Answer(uint64_t request, const std::function<void(Request&)>& fill) {
  MutexLock lock(mu_);
  const auto it = requests_.find(request);
  if (it == requests_.end()) return;  // no thread waits for it any more
  fill(*it->second);
  it->second->answered = true;
  answered_.NotifyAll();
}

void RemoteTask::OnDevices(DevicesReply reply) {
  Answer(reply.request, [&reply](Request& request) { request.devices = std::move(reply.devices); });
}

void RemoteTask::OnRegistered(const RegisteredReply& reply) {
  const Status status = reply.status.WithPlace(StrCat(name_, " (", connection_->peer().address, ")"));
  Answer(reply.request, [&status](Request& request) { request.status = status; });
}

void RemoteTask::OnTrainingDoneAck(uint64_t number) {
  Answer(number, [](Request&) {});
}

void RemoteTask::OnStepReport(StepReportMessage reply) {
  Answer(reply.request, [&reply](Request& request) { request.report = std::move(reply.report); });
}

void RemoteTask::OnStepDone(StepDoneMessage message, std::vector<Tensor> rets) {
  StepDone done;
  std::shared_ptr<StepTrace> trace;
  {
    MutexLock lock(mu_);
    const auto it = steps_.find({message.ref.key, message.ref.step});
    if (it == steps_.end()) return;  // the step was cancelled before
    done = std::move(it->second.done);
    trace = std::move(it->second.trace);
    steps_.erase(it);
  }
  if (trace != nullptr) trace->Add(std::move(message.stats));
  done(message.status.WithPlace(StrCat(name_, " (", connection_->peer().address, ")")), std::move(rets));
}

void RemoteTask::OnLost(const Status& why) {
  std::vector<StepDone> open;
  {
    MutexLock lock(mu_);
    if (!lost_.ok()) return;
    lost_ = why;
    for (auto& [key, step] : steps_) open.push_back(std::move(step.done));
    steps_.clear();
    for (auto& [number, request] : requests_) {
      request->status = why;
      request->answered = true;
    }
    answered_.NotifyAll();
  }
  for (const StepDone& done : open) done(why, {});
}

}  // namespace cohort
