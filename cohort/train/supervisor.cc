// Supervisor and ManagedSession. managed_session prepares a session by a SessionManager, and the chief then starts its
// services as loops of the coordinator: checkpoints, summaries and the step counter. Finish ends them: it stops the
// loops, saves a last checkpoint, closes the session, and throws the first error.
#include "cohort/train/supervisor.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/train/clock.h"
#include "cohort/train/session/training_record.h"
#include "cohort/train/session/written_graph.h"

namespace cohort::train {
namespace {

constexpr int kRatesLogged = 10;  // later ones only go to the event file

// Returns whether a variable has a device, so that it may lie in a task that outlives this process.
bool SharesVariables(const Graph& graph) {
  return std::ranges::any_of(graph.variables(), [](const VariableInfo* variable) {
    return !variable->local && !variable->handle.node->device().empty();
  });
}

ScaffoldOptions ScaffoldFor(const SupervisorOptions& options) {
  return {.init_op = options.init_op,
          .init_feed = options.init_feed,
          .init_fn = options.init_fn,
          .local_init_op = options.local_init_op,
          .ready_op = options.ready_op,
          .saver = options.saver,
          .summary_op = options.summary_op,
          .global_step = options.global_step};
}

std::string Described(const std::exception_ptr& error) { return Status::FromException(error).ToString(); }

}  // namespace

Supervisor::Supervisor(Graph& graph, const SupervisorOptions& options)
    : graph_(graph),
      options_(options),
      scaffold_(ScaffoldFor(options)),
      save_attempts_(options.max_save_failures, "supervisor") {
  for (const auto& [name, interval] : {std::pair{"save_model_interval", options_.save_model_interval},
                                       std::pair{"save_summaries_interval", options_.save_summaries_interval}}) {
    if (interval.count() < 0) {
      throw InvalidArgumentError(
          StrCat("[supervisor] expected ", name, " of at least 0 (0: never); got ", interval.count(), " ms"));
    }
  }
  if (!options_.is_chief) CheckDevicesOfVariables(graph, "supervisor");
  if (SharesVariables(graph)) marker_ = TrainingMarker(graph);
  if (marker_.valid()) record_ = std::make_unique<TrainingRecord>(graph, marker_.device(), "supervisor");
  scaffold_.Finalize(graph_, writes());
}

Supervisor::~Supervisor() = default;

std::unique_ptr<Session> Supervisor::PrepareSession(const std::string& target, const SessionConfig& config) {
  SessionManagerOptions waits{.recovery_wait = options_.recovery_wait, .max_wait = options_.max_wait};
  if (options_.server != nullptr) waits.check_chief = [server = options_.server] { server->ThrowIfChiefIsLost(); };
  if (marker_.valid()) waits.marker = &marker_;
  if (record_ != nullptr && !target.empty()) {  // without a target no other session shares the variables
    record_->Guard(&waits, NameInTraining(options_.server, target), options_.chief_wait);
  }
  const SessionManager manager(graph_, scaffold_, coordinator_, waits);
  if (!options_.is_chief) return manager.WaitForSession(target, config).session;
  PreparedSession prepared = manager.PrepareSession(target, config,
                                                    {.checkpoint_dir = options_.logdir,
                                                     .restore = options_.restore,
                                                     .allow_mixed_steps = options_.allow_mixed_steps});
  if (!prepared.restored.empty()) {
    const int64_t step = scaffold_.Step(*prepared.session);
    MutexLock lock(mu_);
    last_checkpoint_ = prepared.restored;
    if (scaffold_.global_step().valid()) last_saved_step_ = step;
  }
  return std::move(prepared.session);
}

ManagedSession Supervisor::managed_session(const std::string& target, const SessionConfig& config) {
  coordinator_.Reset();
  stopped_by_signal_ = false;
  stop_signal_.emplace([this] {
    if (!coordinator_.should_stop()) stopped_by_signal_ = true;
    coordinator_.RequestStop();
  });
  try {
    std::unique_ptr<Session> session = PrepareSession(target, config);
    if (writes()) StartServices(*session);
    return ManagedSession(*this, std::move(session));
  } catch (...) {
    stop_signal_.reset();
    throw;
  }
}

void Supervisor::StartServices(Session& session) {
  CreateDirectories(options_.logdir);
  WriteFileAtomically(options_.logdir + "/graph.pbtxt", TextForTensorFlow(graph_));
  writer_ = std::make_unique<EventWriter>(options_.logdir);
  writer_->SessionLog(SessionStatus::kStart, scaffold_.Step(session));
  writer_->Graph(BytesForTensorBoard(graph_));
  if (options_.save_summaries_interval.count() > 0) {
    if (scaffold_.summary_op().valid()) {
      coordinator_.Loop("summaries", options_.save_summaries_interval, [this, &session] { RecordSummary(session); });
    }
    if (scaffold_.global_step().valid()) {
      counting_ = false;
      coordinator_.Loop("step counter", options_.save_summaries_interval, [this, &session] { CountSteps(session); });
    }
  }
  if (saver() != nullptr && options_.save_model_interval.count() > 0) {
    coordinator_.Loop("checkpoints", options_.save_model_interval,
                      [this, &session] { save_attempts_.Try([&] { SaveModel(session); }); });
  }
}

void Supervisor::SaveModel(Session& session) {
  const std::string path = options_.logdir + (options_.logdir.ends_with('/') ? "" : "/") + options_.checkpoint_basename;
  std::optional<int64_t> step;
  if (scaffold_.global_step().valid()) step = scaffold_.Step(session);
  {
    MutexLock lock(mu_);
    if (step && step == last_saved_step_) return;
  }
  LogInfo("supervisor", "Saving checkpoint to path ", path);
  const std::string prefix = saver()->Save(session, path, step);
  writer_->SessionLog(SessionStatus::kCheckpoint, step.value_or(0), prefix);
  MutexLock lock(mu_);
  last_checkpoint_ = prefix;
  last_saved_step_ = step;
}

void Supervisor::RecordSummary(Session& session) {
  const int64_t step = scaffold_.Step(session);
  LogInfo("supervisor", "Recording summary at step ", step, ".");
  SummaryComputed(session.Run(scaffold_.summary_op()), step);
}

void Supervisor::CountSteps(Session& session) {
  const int64_t step = scaffold_.Step(session);
  const Clock::time_point now = Clock::now();
  if (counting_ && now > counted_at_) {
    const double rate =
        static_cast<double>(step - counted_step_) / std::chrono::duration<double>(now - counted_at_).count();
    const std::string tag = scaffold_.global_step().name() + "/sec";
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
  if (!coordinator_.AwaitEnd(options_.stop_grace)) {
    LogWarning("supervisor", "a service has not ended within ", SecondsOf(options_.stop_grace), " s");
  }
}

void Supervisor::FinishWriting(Session& session, bool clean) {
  if (writer_ == nullptr) return;
  try {
    if (clean && saver() != nullptr && options_.save_model_interval.count() > 0) SaveModel(session);
    writer_->SessionLog(SessionStatus::kStop, 0);
    writer_->Close();
  } catch (...) {
    coordinator_.RequestStop(std::current_exception());
  }
}

void Supervisor::Finish(std::unique_ptr<Session> session, bool clean) {
  coordinator_.RequestStop();
  if (!coordinator_.AwaitEnd(options_.stop_grace)) {
    LogWarning("supervisor", "a service has not ended within ", SecondsOf(options_.stop_grace),
               " s; its step is cancelled");
    session->Close();
  }
  coordinator_.Join();
  FinishWriting(*session, clean && coordinator_.exception() == nullptr);
  writer_.reset();
  session.reset();
  stop_signal_.reset();
  const std::exception_ptr error = coordinator_.exception();
  if (!clean) {
    if (error != nullptr)
      LogWarning("supervisor", "beside the program's own error a service had this one: ", Described(error));
    return;
  }
  if (error != nullptr) std::rethrow_exception(error);
  if (options_.is_chief && options_.server != nullptr && !stopped_by_signal_) options_.server->AnnounceDone();
}

ManagedSession::ManagedSession(Supervisor& supervisor, std::unique_ptr<Session> session)
    : supervisor_(supervisor), session_(std::move(session)), exceptions_before_(std::uncaught_exceptions()) {}

ManagedSession::~ManagedSession() {
  if (session_ == nullptr) return;
  try {
    supervisor_.Finish(std::move(session_), std::uncaught_exceptions() == exceptions_before_);
  } catch (...) {
    LogError("supervisor", "the session has ended with an error, which ManagedSession::Close would throw: ",
             Described(std::current_exception()));
  }
}

void ManagedSession::Close() {
  if (session_ != nullptr) supervisor_.Finish(std::move(session_), /*clean=*/true);
}

}  // namespace cohort::train
