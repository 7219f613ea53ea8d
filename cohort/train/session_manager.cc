#include "cohort/train/session_manager.h"

#include <algorithm>
#include <utility>
#include <vector>

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

std::string SessionManager::Restore(Session& session, const PrepareOptions& options) const {
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
  std::string restored = saver->RestoreLatest(session, options.checkpoint_dir);
  while (restored.empty() && options.wait_for_checkpoint) {
    if (patience.over()) {
      throw DeadlineExceededError(StrCat("[session manager] expected a checkpoint in ", options.checkpoint_dir,
                                         " within ", SecondsOf(options_.max_wait), " s; got none"));
    }
    if (patience.ShouldLog()) LogInfo("session manager", "Waiting for a checkpoint in ", options.checkpoint_dir);
    patience.Pause("a checkpoint");
    restored = saver->RestoreLatest(session, options.checkpoint_dir);
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

PreparedSession SessionManager::PrepareSession(const std::string& target, const SessionConfig& config,
                                               const PrepareOptions& options) const {
  auto session = std::make_unique<Session>(graph_, target, config);
  std::string restored = Restore(*session, options);
  if (restored.empty()) {
    session->Run(scaffold_.init_feed(), {}, {scaffold_.init_op()});
    if (scaffold_.init_fn()) scaffold_.init_fn()(*session);
  }
  RunLocalInit(*session, restored.empty() ? "init_op" : "restoring " + restored);
  return {std::move(session), std::move(restored)};
}

PreparedSession SessionManager::RecoverSession(const std::string& target, const SessionConfig& config,
                                               const PrepareOptions& options) const {
  auto session = std::make_unique<Session>(graph_, target, config);
  std::string restored = Restore(*session, options);
  if (restored.empty()) return {};
  RunLocalInit(*session, "restoring " + restored);
  return {std::move(session), std::move(restored)};
}

std::unique_ptr<Session> SessionManager::WaitForSession(const std::string& target, SessionConfig config) const {
  Patience patience(coordinator_, options_);
  config.connect_timeout = std::min(config.connect_timeout, options_.max_wait);
  auto session = std::make_unique<Session>(graph_, target, config);
  for (;;) {
    const std::vector<std::string> missing = scaffold_.Missing(*session, /*with_local=*/false);
    if (missing.empty()) break;
    if (options_.check_chief) options_.check_chief();
    if (patience.over()) {
      throw DeadlineExceededError(
          StrCat("[session manager] Session was not ready after waiting ", SecondsOf(options_.max_wait),
                 " secs. These have no value, which the chief should have given them: ", Listed(missing)));
    }
    if (patience.ShouldLog()) {
      LogInfo("session manager", "Waiting for model to be ready; the chief has yet to initialize: ", Listed(missing));
    }
    patience.Pause("the chief");
  }
  RunLocalInit(*session, "waiting for the chief");
  return session;
}

}  // namespace cohort::train
