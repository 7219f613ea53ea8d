// The two kinds of SessionCreator, and the marker by which a chief knows the variables of its own training. The chief
// removes the marker before it restores or initializes, and sets it when that is complete. So a marker never stands
// beside variables that are half restored.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/ops/array.h"
#include "cohort/ops/state.h"
#include "cohort/train/clock.h"
#include "cohort/train/monitored_session.h"

namespace cohort::train {
namespace {

constexpr const char* kIdFile = "/training_id";
constexpr std::chrono::seconds kLook{10};  // a worker's longest wait for a task before it asks about the chief again
constexpr std::chrono::milliseconds kPause{50};  // between two looks at the marker

// Returns the variable beside which the marker lies: the global step, or else the first variable that is not local.
const VariableInfo* PlaceOfMarker(Graph& graph) {
  if (const auto step = ops::GetGlobalStep(graph)) return step->info();
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local) return variable;
  }
  return nullptr;
}

}  // namespace

SessionCreator::SessionCreator(Graph& graph, SessionCreatorOptions options) : options_(std::move(options)) {
  if (options_.scaffold == nullptr) options_.scaffold = std::make_shared<Scaffold>();
  options_.config.connect_timeout = std::min(options_.config.connect_timeout, options_.max_wait);
  const VariableInfo* place = PlaceOfMarker(graph);
  if (options_.master.empty() || place == nullptr) return;  // without a master no variable outlives its session
  const ControlDependencies none(graph, nullptr);
  const DeviceScope device(graph, place->handle.node->device());
  const NameScope scope(graph, "training_marker");
  const Output handle = ops::VarHandleOp(graph, DType::kInt64, Shape{}, "training_marker", "", "marker");
  marker_ = ops::ReadVariableOp(handle);
  marker_is_set_ = ops::VarIsInitializedOp(handle);
  new_marker_ = ops::Placeholder(graph, DType::kInt64, Shape{}, "new_marker");
  set_marker_ = ops::AssignVariableOp(handle, new_marker_);
}

SessionManagerOptions SessionCreator::Waits() const {
  SessionManagerOptions waits{.max_wait = options_.max_wait};
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

std::optional<int64_t> SessionCreator::Marker(Session& session) const {
  if (!has_marker() || !session.Run(marker_is_set_).scalar<bool>()) return std::nullopt;
  return session.Run(marker_).scalar<int64_t>();
}

void SessionCreator::SetMarker(Session& session, int64_t state) const {
  if (has_marker()) session.Run({{new_marker_, Tensor::Scalar<int64_t>(state)}}, {}, {set_marker_});
}

int64_t ChiefSessionCreator::KnownState() const {
  const std::string& dir = options().checkpoint_dir;
  if (dir.empty()) return state();
  const std::string path = dir + kIdFile;
  return FileExists(path) ? std::strtoll(ReadFile(path).c_str(), nullptr, 10) : 0;
}

int64_t ChiefSessionCreator::NewState() const {
  const auto number = static_cast<int64_t>(NewIncarnation() >> 1) | 1;
  const std::string& dir = options().checkpoint_dir;
  if (!dir.empty()) {
    CreateDirectories(dir);
    WriteFileAtomically(dir + kIdFile, StrCat(number, "\n"));
  }
  return number;
}

bool ChiefSessionCreator::HoldsThisTraining(Session& session) const {
  const int64_t known = KnownState();
  return known != 0 && Marker(session) == known && scaffold().Missing(session, /*with_local=*/false).empty();
}

std::unique_ptr<Session> ChiefSessionCreator::CreateSession(const Graph& graph, Coordinator& coordinator) {
  const SessionManager manager(graph, scaffold(), coordinator, Waits());
  if (has_marker()) {
    auto session = std::make_unique<Session>(graph, options().master, options().config);
    if (HoldsThisTraining(*session)) {
      set_state(KnownState());
      LogInfo("train", "The variables hold this training at step ", scaffold().Step(*session),
              ": nothing is restored, and no step is lost");
      manager.RunLocalInit(*session, "a look at the variables of this training");
      return session;
    }
    SetMarker(*session, 0);
  }
  PreparedSession prepared =
      manager.PrepareSession(options().master, options().config, {.checkpoint_dir = options().checkpoint_dir});
  if (!prepared.restored.empty()) {
    LogInfo("train", "Training goes on at step ", scaffold().Step(*prepared.session), " of ", prepared.restored,
            "; steps after it are lost");
  }
  if (has_marker()) set_state(NewState());
  SetMarker(*prepared.session, state());
  return std::move(prepared.session);
}

std::unique_ptr<Session> WorkerSessionCreator::CreateSession(const Graph& graph, Coordinator& coordinator) {
  const SessionManagerOptions waits = Waits();
  const SessionManager manager(graph, scaffold(), coordinator, waits);
  const auto deadline = DeadlineAfter(options().max_wait);
  SessionConfig config = options().config;
  if (waits.check_chief) config.connect_timeout = std::min<std::chrono::milliseconds>(config.connect_timeout, kLook);
  std::unique_ptr<Session> session;
  while (session == nullptr) {
    if (waits.check_chief) waits.check_chief();
    try {
      session = manager.WaitForSession(options().master, config);
    } catch (const DeadlineExceededError&) {
      // A task is not there. If training is done or the chief is lost, the next look says so.
      if (!waits.check_chief || Clock::now() >= deadline || coordinator.should_stop()) throw;
    }
  }
  AwaitState(*session, coordinator);
  return session;
}

void WorkerSessionCreator::AwaitState(Session& session, Coordinator& coordinator) {
  const auto deadline = DeadlineAfter(options().max_wait);
  const SessionManagerOptions waits = Waits();
  std::optional<int64_t> marker = Marker(session);
  while (marker == 0) {  // the chief is about to give the variables their values
    if (waits.check_chief) waits.check_chief();
    if (Clock::now() >= deadline) {
      throw DeadlineExceededError(StrCat("[monitored session] expected the chief to prepare the variables within ",
                                         SecondsOf(options().max_wait), " s; it has begun and not ended"));
    }
    if (coordinator.WaitForStop(Clock::now() + kPause)) {
      throw CancelledError("[monitored session] asked to stop while waiting for the chief");
    }
    marker = Marker(session);
  }
  set_state(marker.value_or(0));
}

}  // namespace cohort::train
