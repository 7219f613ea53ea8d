#include "cohort/train/supervisor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/ops/summary.h"
#include "cohort/train/clock.h"

namespace cohort::train {
namespace {

constexpr double kFirstPauseSecs = 0.01;
constexpr int kRatesLogged = 10;  // later ones only go to the event file
constexpr size_t kNamesShown = 10;

std::string Listed(const std::vector<std::string>& names) {
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown)));
  return StrCat(StrJoin(shown, ", "),
                names.size() > kNamesShown ? StrCat(" and ", names.size() - kNamesShown, " more") : "");
}

void CheckDevices(const Graph& graph) {
  std::vector<std::string> without;
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local && variable->handle.node->device().empty()) without.push_back(variable->name);
  }
  if (without.empty()) return;
  throw InvalidArgumentError(
      StrCat("[supervisor] expected a device for each variable of a worker that is not chief, so that "
             "all workers share them; these have none: ",
             Listed(without), "; build the model in DeviceScope(graph, ReplicaDeviceSetter(...))"));
}

// A placeholder that `value` needs; null where there is none.
const Node* FindPlaceholder(Output value) {
  std::set<const Node*> seen;
  std::vector<const Node*> left{value.node};
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->op_name() == "Placeholder") return node;
    for (const Output& input : node->inputs()) left.push_back(input.node);
    for (const Node* control : node->control_inputs()) left.push_back(control);
  }
  return nullptr;
}

std::string Described(const std::exception_ptr& error) { return Status::FromException(error).ToString(); }

}  // namespace

Supervisor::Supervisor(Graph& graph, const SupervisorOptions& options) : graph_(graph), options_(options) {
  for (const auto& [name, seconds] : {std::pair{"save_model_secs", options_.save_model_secs},
                                      std::pair{"save_summaries_secs", options_.save_summaries_secs}}) {
    if (std::isnan(seconds)) {
      throw InvalidArgumentError(StrCat("[supervisor] expected seconds for ", name, " (0: never); got ", seconds));
    }
  }
  if (!options_.is_chief) CheckDevices(graph);
  AddNodes();
  graph_.Finalize();
}

Supervisor::~Supervisor() = default;

void Supervisor::AddNodes() {
  // The scopes of the model do not concern these nodes.
  const DeviceScope anywhere(graph_, nullptr);
  const ControlDependencies none(graph_, nullptr);
  if (!options_.global_step.valid()) options_.global_step = ops::GetGlobalStep(graph_).value_or(ops::Variable());
  if (options_.init_op == nullptr) options_.init_op = ops::GlobalVariablesInitializer(graph_);
  if (options_.local_init_op == nullptr) options_.local_init_op = ops::LocalVariablesInitializer(graph_);
  if (!options_.ready_op.valid()) options_.ready_op = ops::ReportUninitializedVariables(graph_);
  if (!writes()) return;
  saver_ = options_.saver;
  if (saver_ == nullptr && !graph_.variables().empty()) {
    own_saver_ = std::make_unique<Saver>(graph_);
    saver_ = own_saver_.get();
  }
  summary_op_ = options_.summary_op ? *options_.summary_op : ops::MergeAllSummaries(graph_);
  if (!summary_op_.valid()) return;
  if (const Node* placeholder = FindPlaceholder(summary_op_)) {
    LogWarning("supervisor", "the summaries need '", placeholder->name(),
               "' to be fed and so are not recorded here; fetch ", summary_op_.name(),
               " in the program and give it to SummaryComputed, or set summary_op = Output()");
    summary_op_ = Output();
  }
}

std::vector<std::string> Supervisor::Missing(Session& session, bool with_local) const {
  std::vector<std::string> names = session.Run(options_.ready_op).ToVector<std::string>();
  if (with_local) return names;
  std::set<std::string> local;
  for (const VariableInfo* variable : graph_.variables()) {
    if (variable->local) local.insert(variable->name);
  }
  std::erase_if(names, [&](const std::string& name) { return local.contains(name); });
  return names;
}

int64_t Supervisor::Step(Session& session) const {
  if (!options_.global_step.valid()) return 0;
  const Tensor value = session.Run(options_.global_step.value());
  return value.dtype() == DType::kInt32 ? value.scalar<int32_t>() : value.scalar<int64_t>();
}

std::unique_ptr<Session> Supervisor::PrepareSession(const std::string& target, const SessionConfig& config) {
  auto session = std::make_unique<Session>(graph_, target, config);
  std::string restored;
  if (saver_ != nullptr) {
    CreateDirectories(options_.logdir);
    RemoveAbandonedFiles(options_.logdir);
    if (options_.restore) {
      restored = saver_->RestoreLatest(*session, options_.logdir);
      saver_->RecoverLastCheckpoints(options_.logdir);
    } else if (!LatestCheckpoint(options_.logdir).empty()) {
      LogInfo("supervisor", "starting anew; the checkpoints in ", options_.logdir, " stay as they are");
    }
  }
  if (restored.empty()) {
    session->Run(options_.init_feed, {}, {options_.init_op});
  } else {
    const int64_t step = Step(*session);
    MutexLock lock(mu_);
    last_checkpoint_ = restored;
    if (options_.global_step.valid()) last_saved_step_ = step;
  }
  session->Run(options_.local_init_op);
  const std::vector<std::string> missing = Missing(*session, /*with_local=*/true);
  if (!missing.empty()) {
    throw FailedPreconditionError(
        StrCat("[supervisor] Init operations did not make model ready: these have no value after ",
               restored.empty() ? "init_op" : "restoring " + restored, ": ", Listed(missing)));
  }
  return session;
}

std::unique_ptr<Session> Supervisor::WaitForSession(const std::string& target, SessionConfig config) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline = start + DurationOf(options_.max_wait_secs);
  config.connect_timeout_secs = std::min(config.connect_timeout_secs, options_.max_wait_secs);
  auto session = std::make_unique<Session>(graph_, target, config);
  double pause = std::min(kFirstPauseSecs, options_.recovery_wait_secs);
  Clock::time_point next_log = start + std::chrono::seconds(1);
  for (;;) {
    const std::vector<std::string> missing = Missing(*session, /*with_local=*/false);
    if (missing.empty()) break;
    if (options_.server != nullptr) options_.server->ThrowIfChiefIsLost();
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      throw DeadlineExceededError(
          StrCat("[supervisor] Session was not ready after waiting ", options_.max_wait_secs,
                 " secs. These have no value, which the chief should have given them: ", Listed(missing)));
    }
    if (now >= next_log) {
      LogInfo("supervisor", "Waiting for model to be ready; the chief has yet to initialize: ", Listed(missing));
      next_log = now + std::chrono::seconds(10);
    }
    if (coordinator_.WaitForStop(std::min(deadline, now + DurationOf(pause)))) {
      throw CancelledError("[supervisor] stopped while waiting for the chief");
    }
    pause = std::min(2 * pause, options_.recovery_wait_secs);
  }
  session->Run(options_.local_init_op);
  return session;
}

ManagedSession Supervisor::managed_session(const std::string& target, const SessionConfig& config) {
  coordinator_.Reset();
  std::unique_ptr<Session> session =
      options_.is_chief ? PrepareSession(target, config) : WaitForSession(target, config);
  if (writes()) StartServices(*session);
  return ManagedSession(*this, std::move(session));
}

void Supervisor::StartServices(Session& session) {
  CreateDirectories(options_.logdir);
  WriteFileAtomically(options_.logdir + "/graph.pbtxt", GraphDefText(graph_));
  writer_ = std::make_unique<EventWriter>(options_.logdir);
  writer_->SessionLog(SessionStatus::kStart, Step(session));
  writer_->Graph(SerializeGraphDef(graph_));
  if (options_.save_summaries_secs > 0) {
    if (summary_op_.valid()) {
      coordinator_.Loop("summaries", options_.save_summaries_secs, [this, &session] { RecordSummary(session); });
    }
    if (options_.global_step.valid()) {
      counting_ = false;
      coordinator_.Loop("step counter", options_.save_summaries_secs, [this, &session] { CountSteps(session); });
    }
  }
  if (saver_ != nullptr && options_.save_model_secs > 0) {
    coordinator_.Loop("checkpoints", options_.save_model_secs, [this, &session] { SaveModel(session); });
  }
}

void Supervisor::SaveModel(Session& session) {
  const std::string path = options_.logdir + (options_.logdir.ends_with('/') ? "" : "/") + options_.checkpoint_basename;
  std::optional<int64_t> step;
  if (options_.global_step.valid()) step = Step(session);
  {
    MutexLock lock(mu_);
    if (step && step == last_saved_step_) return;
  }
  LogInfo("supervisor", "Saving checkpoint to path ", path);
  const std::string prefix = saver_->Save(session, path, step);
  writer_->SessionLog(SessionStatus::kCheckpoint, step.value_or(0), prefix);
  MutexLock lock(mu_);
  last_checkpoint_ = prefix;
  last_saved_step_ = step;
}

void Supervisor::RecordSummary(Session& session) {
  const int64_t step = Step(session);
  LogInfo("supervisor", "Recording summary at step ", step, ".");
  SummaryComputed(session.Run(summary_op_), step);
}

void Supervisor::CountSteps(Session& session) {
  const int64_t step = Step(session);
  const Clock::time_point now = Clock::now();
  if (counting_ && now > counted_at_) {
    const double rate =
        static_cast<double>(step - counted_step_) / std::chrono::duration<double>(now - counted_at_).count();
    const std::string tag = options_.global_step.name() + "/sec";
    writer_->Scalar(tag, static_cast<float>(rate), step);
    if (rates_logged_++ < kRatesLogged) LogInfo("supervisor", tag, ": ", rate);
  }
  counting_ = true;
  counted_at_ = now;
  counted_step_ = step;
}

void Supervisor::SummaryComputed(const Tensor& summary, int64_t step) {
  if (writer_ != nullptr) writer_->Summary(summary.scalar<std::string>(), step);
}

std::string Supervisor::last_checkpoint() const {
  MutexLock lock(mu_);
  return last_checkpoint_;
}

void Supervisor::Stop() {
  RequestStop();
  if (!coordinator_.AwaitEnd(options_.stop_grace_secs)) {
    LogWarning("supervisor", "a service has not ended within ", options_.stop_grace_secs, " s");
  }
}

void Supervisor::FinishWriting(Session& session, bool clean) {
  if (writer_ == nullptr) return;
  try {
    if (clean && saver_ != nullptr && options_.save_model_secs > 0) SaveModel(session);
    writer_->SessionLog(SessionStatus::kStop, 0);
    writer_->Close();
  } catch (...) {
    coordinator_.RequestStop(std::current_exception());
  }
}

void Supervisor::Finish(std::unique_ptr<Session> session, bool clean) {
  coordinator_.RequestStop();
  if (!coordinator_.AwaitEnd(options_.stop_grace_secs)) {
    LogWarning("supervisor", "a service has not ended within ", options_.stop_grace_secs, " s; its step is cancelled");
    session->Close();
  }
  coordinator_.Join();
  FinishWriting(*session, clean && coordinator_.exception() == nullptr);
  writer_.reset();
  session.reset();
  const std::exception_ptr error = coordinator_.exception();
  if (!clean) {
    if (error != nullptr)
      LogWarning("supervisor", "beside the program's own error a service had this one: ", Described(error));
    return;
  }
  if (error != nullptr) std::rethrow_exception(error);
  if (options_.is_chief && options_.server != nullptr) options_.server->AnnounceDone();
}

ManagedSession::ManagedSession(Supervisor& supervisor, std::unique_ptr<Session> session)
    : supervisor_(supervisor), session_(std::move(session)), exceptions_before_(std::uncaught_exceptions()) {}

ManagedSession::~ManagedSession() noexcept(false) {
  if (session_ != nullptr) supervisor_.Finish(std::move(session_), std::uncaught_exceptions() == exceptions_before_);
}

void ManagedSession::Close() {
  if (session_ != nullptr) supervisor_.Finish(std::move(session_), /*clean=*/true);
}

}  // namespace cohort::train
