// The two kinds of SessionCreator, and the marker by which a chief knows the variables of its own training. The chief
// removes the marker before it restores or initializes, and sets it when that is complete. So a marker never stands
// beside variables that are half restored.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/ops/array.h"
#include "cohort/ops/state.h"
#include "cohort/train/monitored_session.h"

namespace cohort::train {
namespace {

constexpr const char* kIdFile = "/training_id";

// Returns the variable beside which the marker lies: the global step, or else the first variable that is not local.
const VariableInfo* PlaceOfMarker(Graph& graph) {
  if (const auto step = ops::GetGlobalStep(graph)) return step->info();
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local) return variable;
  }
  return nullptr;
}

int64_t NewTrainingId() { return static_cast<int64_t>(NewIncarnation() >> 1) | 1; }

}  // namespace

SessionCreator::SessionCreator(SessionCreatorOptions options) : options_(std::move(options)) {
  if (options_.scaffold == nullptr) options_.scaffold = std::make_shared<Scaffold>();
  options_.config.connect_timeout = std::min(options_.config.connect_timeout, options_.max_wait);
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

ChiefSessionCreator::ChiefSessionCreator(Graph& graph, SessionCreatorOptions options)
    : SessionCreator(std::move(options)) {
  if (!this->options().master.empty()) AddMarker(graph);  // without a master no variable outlives its session
}

void ChiefSessionCreator::AddMarker(Graph& graph) {
  const VariableInfo* place = PlaceOfMarker(graph);
  if (place == nullptr) return;
  const ControlDependencies none(graph, nullptr);
  const DeviceScope device(graph, place->handle.node->device());
  const NameScope scope(graph, "training_marker");
  const Output handle = ops::VarHandleOp(graph, DType::kInt64, Shape{}, "", "", "marker");
  marker_ = ops::ReadVariableOp(handle);
  marker_is_set_ = ops::VarIsInitializedOp(handle);
  new_marker_ = ops::Placeholder(graph, DType::kInt64, Shape{}, "new_marker");
  set_marker_ = ops::AssignVariableOp(handle, new_marker_);
}

int64_t ChiefSessionCreator::TrainingId() {
  const std::string& dir = options().checkpoint_dir;
  if (dir.empty()) return id_ != 0 ? id_ : NewTrainingId();
  const std::string path = dir + kIdFile;
  if (FileExists(path)) {
    const int64_t id = std::strtoll(ReadFile(path).c_str(), nullptr, 10);
    if (id != 0) return id;
    LogWarning("train", path, " does not hold the number of a training; it is replaced");
  }
  CreateDirectories(dir);
  const int64_t id = NewTrainingId();
  WriteFileAtomically(path, StrCat(id, "\n"));
  return id;
}

void ChiefSessionCreator::Mark(Session& session, int64_t id) const {
  if (set_marker_ != nullptr) session.Run({{new_marker_, Tensor::Scalar<int64_t>(id)}}, {}, {set_marker_});
}

bool ChiefSessionCreator::HoldsThisTraining(Session& session) const {
  if (set_marker_ == nullptr || !session.Run(marker_is_set_).scalar<bool>()) return false;
  return session.Run(marker_).scalar<int64_t>() == id_ && scaffold().Missing(session, /*with_local=*/false).empty();
}

std::unique_ptr<Session> ChiefSessionCreator::CreateSession(const Graph& graph, Coordinator& coordinator) {
  id_ = TrainingId();
  const SessionManager manager(graph, scaffold(), coordinator, Waits());
  if (set_marker_ != nullptr) {
    auto session = std::make_unique<Session>(graph, options().master, options().config);
    if (HoldsThisTraining(*session)) {
      LogInfo("train", "The variables hold this training at step ", scaffold().Step(*session),
              ": nothing is restored, and no step is lost");
      manager.RunLocalInit(*session, "a look at the variables of this training");
      return session;
    }
    Mark(*session, 0);
  }
  PreparedSession prepared =
      manager.PrepareSession(options().master, options().config, {.checkpoint_dir = options().checkpoint_dir});
  if (!prepared.restored.empty()) {
    LogInfo("train", "Training goes on at step ", scaffold().Step(*prepared.session), " of ", prepared.restored,
            "; steps after it are lost");
  }
  Mark(*prepared.session, id_);
  return std::move(prepared.session);
}

std::unique_ptr<Session> WorkerSessionCreator::CreateSession(const Graph& graph, Coordinator& coordinator) {
  const SessionManager manager(graph, scaffold(), coordinator, Waits());
  return manager.WaitForSession(options().master, options().config);
}

}  // namespace cohort::train
