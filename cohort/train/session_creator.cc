#include <algorithm>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/train/clock.h"
#include "cohort/train/monitored_session.h"
#include "cohort/train/session/training_record.h"

namespace cohort::train {
namespace {

constexpr std::chrono::seconds kLook{10};  // a worker's longest wait for a task before it asks about the chief again

}  // namespace

SessionCreator::SessionCreator(Graph& graph, SessionCreatorOptions options) : options_(std::move(options)) {
  if (options_.scaffold == nullptr) options_.scaffold = std::make_shared<Scaffold>();
  options_.config.connect_timeout = std::min(options_.config.connect_timeout, options_.max_wait);
  if (options_.master.empty()) return;  // without a master no variable outlives its session
  marker_ = TrainingMarker(graph);
  if (marker_.valid()) record_ = std::make_unique<TrainingRecord>(graph, marker_.device(), "monitored session");
}

SessionCreator::~SessionCreator() = default;

void SessionCreator::SetInterrupted(const std::function<Status()>& interrupted) {
  options_.config.interrupted = [given = options_.config.interrupted, interrupted] {
    const Status why = given ? given() : Status();
    return why.ok() ? interrupted() : why;
  };
}

SessionManagerOptions SessionCreator::Waits() {
  SessionManagerOptions waits{.max_wait = options_.max_wait};
  if (record_ != nullptr) {
    waits.marker = &marker_;
    record_->Guard(&waits, NameInTraining(options_.server, options_.master), options_.chief_wait);
  }
  if (options_.server == nullptr) return waits;
  waits.check_chief = [server = options_.server] {
    if (server->training_done()) {
      throw OutOfRangeError("[monitored session] the chief has ended the training before this task could take part");
    }
    try {
      server->ThrowIfChiefIsLost();
    } catch (const UnavailableError& error) {
      // An UnavailableError would mean that another try may succeed.
      throw DeadlineExceededError(error.what());
    }
  };
  return waits;
}

std::unique_ptr<Session> ChiefSessionCreator::CreateSession(const Graph& graph, Coordinator& coordinator) {
  const SessionManager manager(graph, scaffold(), coordinator, Waits());
  return Keep(manager.PrepareSession(options().master, options().config,
                                     {.checkpoint_dir = options().checkpoint_dir,
                                      .allow_mixed_steps = options().allow_mixed_steps,
                                      .seen_step = seen_step()}));
}

std::unique_ptr<Session> SessionCreator::Keep(PreparedSession prepared) {
  state_ = prepared.marker;
  if (!prepared.restored.empty()) seen_step_ = scaffold().Step(*prepared.session);
  return std::move(prepared.session);
}

std::unique_ptr<Session> WorkerSessionCreator::CreateSession(const Graph& graph, Coordinator& coordinator) {
  // The task of another server's target may well be what the workers share.
  if (options().master.empty() || options().server != nullptr) CheckDevicesOfVariables(graph, "monitored session");
  const SessionManagerOptions waits = Waits();
  const SessionManager manager(graph, scaffold(), coordinator, waits);
  const auto deadline = DeadlineAfter(options().max_wait);
  SessionConfig config = options().config;
  if (waits.check_chief) config.connect_timeout = std::min<std::chrono::milliseconds>(config.connect_timeout, kLook);
  for (;;) {
    if (waits.check_chief) waits.check_chief();
    try {
      return Keep(manager.WaitForSession(options().master, config));
    } catch (const DeadlineExceededError&) {
      // A task is not there. If training is done or the chief is lost, the next look says so.
      if (!waits.check_chief || Clock::now() >= deadline || coordinator.should_stop()) throw;
    }
  }
}

}  // namespace cohort::train
