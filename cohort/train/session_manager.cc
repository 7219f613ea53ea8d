#include "cohort/train/session_manager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/cluster/server_directory.h"
#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/train/clock.h"

namespace cohort::train {
namespace {

constexpr std::chrono::milliseconds kFirstPause{10};
constexpr size_t kNamesShown = 10;

std::string Listed(const std::vector<std::string>& names) {
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown)));
  return StrCat(StrJoin(shown, ", "),
                names.size() > kNamesShown ? StrCat(" and ", names.size() - kNamesShown, " more") : "");
}

std::string AtStep(const std::optional<int64_t>& step) { return step ? StrCat(" at step ", *step) : ""; }

// Returns how many steps after the step `now` are lost, as far as this is known: `before` is the step that the
// variables had, `seen` the last one that this process has seen, or -1.
std::string LostSteps(int64_t now, const std::optional<int64_t>& before, int64_t seen) {
  if (before) return *before > now ? StrCat("; ", *before - now, " steps after it are lost") : "; no step is lost";
  if (seen > now) {
    return StrCat("; at least ", seen - now, " steps after it are lost: this task has seen step ", seen);
  }
  if (seen == now) return "; this task has seen no step after it that is lost";
  return "; steps after it, if there were any, are lost: no task that has seen them is left";
}

// Logs which variables had lost their values.
void LogMissing(const std::vector<std::string>& missing, const std::string& restored, bool mixed) {
  if (missing.empty()) return;
  LogWarning("session manager", "A task of the parameters was started again. These had no value: ", Listed(missing));
  if (restored.empty()) LogWarning("session manager", "There is no checkpoint: training begins anew");
  if (mixed && !restored.empty()) {
    LogWarning("session manager", "Only these were restored from ", restored,
               "; the others go on with the values that they had, so the steps are mixed");
  }
}

// The pauses of a wait: they become longer, and end with the deadline or if the coordinator stops.
class Patience {
 public:
  Patience(Coordinator& coordinator, const SessionManagerOptions& options)
      : coordinator_(coordinator),
        longest_(std::max(options.recovery_wait, std::chrono::milliseconds(1))),
        pause_(std::min(kFirstPause, longest_)),
        deadline_(DeadlineAfter(options.max_wait)),
        next_log_(Clock::now() + std::chrono::seconds(1)) {}

  bool over() const { return Clock::now() >= deadline_; }
  // Returns true once after a second, then every 10 s.
  bool ShouldLog() {
    const Clock::time_point now = Clock::now();
    if (now < next_log_) return false;
    next_log_ = now + std::chrono::seconds(10);
    return true;
  }
  // Throws CancelledError, naming `what`, if the coordinator stops.
  void Pause(const char* what) {
    if (coordinator_.WaitForStop(std::min(deadline_, Clock::now() + pause_))) {
      throw CancelledError(StrCat("[session manager] stopped while waiting for ", what));
    }
    pause_ = std::min(2 * pause_, longest_);
  }

 private:
  Coordinator& coordinator_;
  const std::chrono::milliseconds longest_;
  std::chrono::milliseconds pause_;
  const Clock::time_point deadline_;
  Clock::time_point next_log_;
};

}  // namespace

SessionManager::SessionManager(const Graph& graph, const Scaffold& scaffold, Coordinator& coordinator,
                               SessionManagerOptions options)
    : graph_(graph), scaffold_(scaffold), coordinator_(coordinator), options_(std::move(options)) {}

std::string SessionManager::Restore(Session& session, const PrepareOptions& options,
                                    const std::vector<std::string>& only) const {
  Saver* saver = scaffold_.saver();
  if (saver == nullptr || options.checkpoint_dir.empty()) return "";
  CreateDirectories(options.checkpoint_dir);
  // If a checkpoint is awaited, another process writes there.
  if (!options.wait_for_checkpoint) RemoveAbandonedFiles(options.checkpoint_dir);
  if (!options.restore) {
    if (!LatestCheckpoint(options.checkpoint_dir).empty()) {
      LogInfo("session manager", "starting anew; the checkpoints in ", options.checkpoint_dir, " stay as they are");
    }
    return "";
  }
  Patience patience(coordinator_, options_);
  std::string restored = saver->RestoreLatest(session, options.checkpoint_dir, only);
  while (restored.empty() && options.wait_for_checkpoint) {
    if (patience.over()) {
      throw DeadlineExceededError(StrCat("[session manager] expected a checkpoint in ", options.checkpoint_dir,
                                         " within ", SecondsOf(options_.max_wait), " s; got none"));
    }
    if (patience.ShouldLog()) LogInfo("session manager", "Waiting for a checkpoint in ", options.checkpoint_dir);
    patience.Pause("a checkpoint");
    restored = saver->RestoreLatest(session, options.checkpoint_dir, only);
  }
  saver->RecoverLastCheckpoints(options.checkpoint_dir);
  return restored;
}

void SessionManager::RunLocalInit(Session& session, const std::string& what_ran) const {
  LogInfo("session manager", "Running local_init_op.");
  session.Run(scaffold_.local_init_op());
  LogInfo("session manager", "Done running local_init_op.");
  const std::vector<std::string> missing = scaffold_.Missing(session, /*with_local=*/true);
  if (missing.empty()) return;
  throw FailedPreconditionError(
      StrCat("[session manager] Init operations did not make model ready: these have no value after ", what_ran, ": ",
             Listed(missing)));
}

SessionManager::Found SessionManager::Look(Session& session, const PrepareOptions& options) const {
  Found found;
  if (options_.marker == nullptr || !options.restore) return found;
  const std::optional<int64_t> marker = options_.marker->Read(session);
  if (!marker || !options_.marker->Knows(*marker, options.checkpoint_dir)) return found;
  found.of_this_training = true;
  found.missing = scaffold_.Missing(session, /*with_local=*/false);
  const ops::Variable& step = scaffold_.global_step();
  if (step.valid() && std::ranges::find(found.missing, step.name()) == found.missing.end()) {
    found.step = scaffold_.Step(session);
  }
  return found;
}

std::unique_ptr<Session> SessionManager::Open(const std::string& target, SessionConfig config) const {
  config.interrupted = [&coordinator = coordinator_, given = config.interrupted] {
    Status why = given ? given() : Status();
    if (why.ok() && coordinator.should_stop()) why = Status(Code::kCancelled, "[session manager] asked to stop");
    return why;
  };
  return std::make_unique<Session>(graph_, target, config);
}

PreparedSession SessionManager::PrepareSession(const std::string& target, const SessionConfig& config,
                                               const PrepareOptions& options) const {
  std::unique_ptr<Session> session = Open(target, config);
  WriteClusterFileOf(target, options.checkpoint_dir);
  Found found = Look(*session, options);
  if (options_.lead) {
    options_.lead(*session, found.of_this_training && found.missing.empty());
    found = Look(*session, options);  // another chief may have led until now
  }
  if (found.of_this_training && found.missing.empty()) {
    LogInfo("session manager", "The variables hold this training", AtStep(found.step),
            ": nothing is restored, and no step is lost");
    RunLocalInit(*session, "a look at the variables of this training");
    const int64_t marker = options_.marker->Read(*session).value_or(0);
    return {std::move(session), "", marker};
  }
  if (options_.marker != nullptr) options_.marker->Set(*session, 0);
  const bool mixed = found.of_this_training && options.allow_mixed_steps;
  std::string restored = Restore(*session, options, mixed ? found.missing : std::vector<std::string>());
  if (restored.empty()) {
    session->Run(scaffold_.init_feed(), {}, {scaffold_.init_op()});
    if (scaffold_.init_fn()) scaffold_.init_fn()(*session);
  }
  RunLocalInit(*session, restored.empty() ? "init_op" : "restoring " + restored);
  LogMissing(found.missing, restored, mixed);
  if (options.allow_mixed_steps && !mixed && !restored.empty()) {
    LogWarning("session manager",
               "allow_mixed_steps has no effect: it is not known which variables are of this training, ",
               "because the task of the global step was started again. All were restored from ", restored);
  }
  if (!restored.empty() && !mixed) {
    const int64_t step = scaffold_.Step(*session);
    LogInfo("session manager", "Training goes on at step ", step, " of ", restored,
            LostSteps(step, found.step, options.seen_step));
  }
  int64_t marker = 0;
  if (options_.marker != nullptr) {
    marker = options_.marker->NewNumber(options.checkpoint_dir);
    options_.marker->Set(*session, marker);
  }
  return {std::move(session), std::move(restored), marker};
}

PreparedSession SessionManager::RecoverSession(const std::string& target, const SessionConfig& config,
                                               const PrepareOptions& options) const {
  std::unique_ptr<Session> session = Open(target, config);
  std::string restored = Restore(*session, options);
  if (restored.empty()) return {};
  RunLocalInit(*session, "restoring " + restored);
  return {std::move(session), std::move(restored)};
}

std::string SessionManager::ReasonToWait(Session& session, int64_t* marker) const {
  const std::vector<std::string> missing = scaffold_.Missing(session, /*with_local=*/false);
  const bool ready = options_.session_is_ready == nullptr || options_.session_is_ready(session);
  if (!missing.empty()) return "These have no value, which the chief should have given them: " + Listed(missing);
  if (!ready) return "The variables are those of another training, and no chief has come";
  if (options_.marker == nullptr) return "";
  const std::optional<int64_t> seen = options_.marker->Read(session);
  if (seen == 0) return "The chief has begun to give the variables their values, and has not ended";
  *marker = seen.value_or(0);
  return "";
}

PreparedSession SessionManager::WaitForSession(const std::string& target, SessionConfig config) const {
  Patience patience(coordinator_, options_);
  config.connect_timeout = std::min(config.connect_timeout, options_.max_wait);
  PreparedSession prepared{.session = Open(target, config)};
  for (;;) {
    const std::string reason = ReasonToWait(*prepared.session, &prepared.marker);
    if (reason.empty()) break;
    if (options_.check_chief) options_.check_chief();
    if (patience.over()) {
      throw DeadlineExceededError(StrCat("[session manager] Session was not ready after waiting ",
                                         SecondsOf(options_.max_wait), " secs. ", reason));
    }
    if (patience.ShouldLog()) LogInfo("session manager", "Waiting for model to be ready. ", reason);
    patience.Pause("the chief");
  }
  RunLocalInit(*prepared.session, "waiting for the chief");
  return prepared;
}

}  // namespace cohort::train
