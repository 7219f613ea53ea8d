// Launcher: starts the tasks of a local cluster, and waits until all of them have ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/port_reservation.h"
#include "tools/cohort/health_check.h"
#include "tools/cohort/launch_certificates.h"
#include "tools/cohort/launch_layout.h"
#include "tools/cohort/output_mux.h"
#include "tools/cohort/process.h"
#include "tools/cohort/restart_record.h"
#include "tools/cohort/token_file.h"

namespace cohort::tools {

struct LaunchOptions {
  JobCounts jobs;
  // How many times within restart_window each failed task is started again. An end that follows from the end of another
  // task does not count.
  int restarts = 0;
  std::chrono::duration<double> restart_window{600};
  // The time that tasks have to end by themselves after a failure, and the chief to save after a signal.
  std::chrono::duration<double> grace{10};
  std::chrono::duration<double> kill_after{5};  // between SIGTERM and SIGKILL
  // A task with a Server that is stopped, or does not answer the launcher for another reason, is killed after this
  // time. 0: never, and the launcher asks nobody.
  std::chrono::duration<double> unhealthy_after{30};
  std::optional<int> threads_per_task;   // replaces a share of the cores
  std::optional<double> orphan_timeout;  // seconds; COHORT_ORPHAN_TIMEOUT of every task
  std::optional<double> chief_timeout;   // seconds; COHORT_CHIEF_TIMEOUT of every task
  ColorMode color = ColorMode::kAuto;
  bool tls = false;                  // make certificates; tasks connect by TLS only
  std::string output_dir;            // if set, each task also has a log file there; made if missing
  std::string logdir;                // if set, the launcher writes cluster.json there, for `cohort status`
  bool ps_gpus = false;              // parameter servers see the GPUs of this machine, as the other tasks do
  bool metrics = false;              // give each task a port for its metrics (COHORT_METRICS_PORT)
  std::vector<std::string> command;  // PROGRAM ARGS
};

// Holds what every task gets: its address, TF_CONFIG and environment. Keeps the ports of the tasks reserved until it is
// destroyed.
class LaunchPlan {
 public:
  explicit LaunchPlan(const LaunchOptions& options);

  const std::vector<TaskId>& tasks() const { return tasks_; }
  std::string TFConfig(size_t task) const { return TFConfigText(tasks_, addresses_, task); }
  Environment EnvironmentOf(size_t task) const;
  // Returns "" for a task that has no metrics.
  std::string MetricsAddress(size_t task) const;
  ClusterSpec Cluster() const;
  // Returns the token of the launch, or "" if the launcher's own environment has one for the tasks.
  std::string OwnToken() const;

 private:
  std::vector<TaskId> tasks_;
  std::vector<PortReservation> ports_;
  std::vector<std::string> addresses_;
  std::vector<std::optional<PortReservation>> metrics_ports_;  // by task
  CoreDivision division_;
  bool threads_are_fixed_;
  bool ps_gpus_;
  std::optional<double> orphan_timeout_;
  std::optional<double> chief_timeout_;
  std::chrono::duration<double> stop_grace_;
  std::string token_;
  std::string run_id_;
};

// Runs one launch, on one thread. Requires: it runs inside RunWatched (process_tree.h).
//
// A task has failed if its exit code is not 0. If it has restarts left, it is started again, and the other tasks go on.
// The pause before a start is 0.1 s, and doubles up to 10 s with each failure of the task within restart_window.
// Otherwise the launch has failed. The launcher then names the first such task. The other tasks have `grace` to end by
// themselves. Then they get SIGTERM, and `kill_after` later SIGKILL.
// A task whose Server has called the launcher (health_check.h), and that then does not answer, is named after 4 s.
// After unhealthy_after it gets SIGKILL, and so has failed. The same happens to a task that is stopped (SIGSTOP) before
// it has a Server, if another task has one. A task that a debugger has stopped is not judged. After the chief has said
// that training is done, such a task has only `grace`, if that is shorter; it gets SIGTERM, `kill_after` later SIGKILL,
// and this is not a failure.
// When all tasks except ps tasks have ended with code 0, a ps has `grace` to end, too. Then it gets SIGTERM, which is
// not a failure. A signal to the launcher skips this wait: the chief gets SIGTERM and has `grace` to save and end, then
// the other workers and the evaluator get it. When they have ended, the ps tasks get it, which hold what the others
// save. After a second signal the tasks get SIGKILL.
class Launcher {
 public:
  // `parent_fd` is the argument that RunWatched passes. `certificates` are those of options.tls, else null; they must
  // live as long as the launcher.
  Launcher(const LaunchOptions& options, int parent_fd, const LaunchCertificates* certificates);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns the exit code: 0 if every task has ended with 0, the first failed task's code (128 + signal if a signal
  // ended it), 0 or 128 + signal if the launcher got a signal (0 if the chief has then ended with 0, and no
  // worker has failed otherwise than by SIGTERM), or
  // 126 or 127 if the program cannot be run. No descendant
  // process is left when it returns.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase {
    kRunning,
    kGrace,      // tasks are ending by themselves
    kTerm,       // SIGTERM is sent
    kKill,       // SIGKILL is sent
    kLeftovers,  // no task is left, but processes that tasks have started are; they may end soon
    kLeftoversTerm,
    kDone,
  };
  struct Task {
    TaskId id;
    pid_t pid = -1;  // -1: not running
    int pid_fd = -1;
    Clock::time_point start;
    RestartRecord failures;
    int starts = 0;
    std::optional<Clock::time_point> start_again;  // the end of the pause before its next start
    // Set if training is done and the task, which did not answer, has got SIGTERM: when it gets SIGKILL.
    std::optional<Clock::time_point> kill_at;
    // Set if the task is stopped and has not called the launcher: since when that is known.
    std::optional<Clock::time_point> stopped_since;
    bool stop_told = false;  // the launcher has said so
  };
  // The order in which tasks end after a signal.
  enum class Rank { kChief, kWorker, kServer };

  bool StartAll();
  void Start(size_t task);
  void WaitForEvents();
  void HandleSignals();
  void HandleSignal(int signal);
  void ReapTasks();
  void ReapOrphans();
  void HandleEnd(size_t task, int wait_status);
  void Fail(int exit_code);
  bool WillRestart(const Task& task, int wait_status) const;
  // Returns whether the end of `task` follows from that of another task: that one has failed by itself shortly before,
  // and this one has ended with an exit code, not by a signal.
  bool FollowsFromAnother(const Task& task, int wait_status) const;
  void PlanRestart(size_t task, const std::string& what, int wait_status);
  void StartAgain();
  // Reads what the tasks have said, and asks them for their health.
  void UpdateHealth();
  // Says which tasks do not answer, and kills those that are silent for too long.
  void CheckHealth();
  // Does the same for tasks that were stopped before they had a Server.
  void CheckStopped(bool training_is_done);
  void EndUnhealthy(const HealthCheck::Report& silent, bool training_is_done);
  // Says how the user can look at the cluster, when the first task has a server.
  void SayHowToLook();
  bool TrainingIsDone() const;
  Rank RankOf(const Task& task) const;
  // Sends SIGTERM to the tasks of the next rank that has running tasks. Says so behind `why`, unless that is "".
  void TerminateNextRank(const std::string& why);
  std::chrono::duration<double> ChiefsLimit() const;
  // Enters the next phase if the condition of this phase is met or its time is over.
  void Advance();
  void AdvanceTerm(bool late);
  void AdvanceLeftovers(bool late);
  void Enter(Phase phase, std::chrono::duration<double> limit);
  // `why` begins the message after a signal.
  void EnterTerm(const std::string& why);
  void EnterKill();
  void Signal(const Task& task, int signal);
  void SignalTasks(int signal);
  void KillWhatIsLeft();
  void FlushOutput();
  bool AnyRunning(bool ps_too) const;
  bool AnyRunning(Rank rank) const;
  std::string RunningNames() const;

  const LaunchOptions options_;
  const int parent_fd_;
  const LaunchCertificates* const certificates_;
  int signal_fd_ = -1;
  int ended_fd_ = -1;  // an epoll of the tasks' pid_fd; returns them in the order in which the tasks end
  bool parent_gone_ = false;
  int stop_signal_ = 0;              // the first signal that the launcher got
  std::optional<Rank> terminating_;  // after a signal: the rank that has got SIGTERM last
  bool all_ended_well_ =
      true;  // after a signal: no task but a ps has ended with another code than 0, or a worker by SIGTERM
  LaunchPlan plan_;
  const TokenFile token_file_;
  bool said_how_to_look_ = false;
  HealthCheck health_;
  OutputMux output_;
  std::string program_;
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  Clock::time_point phase_end_ = Clock::time_point::max();
  std::set<pid_t> terminated_;     // leftovers that got SIGTERM
  std::optional<int> failure_;     // exit code of the first failed task, or of one that a signal has killed just then
  Clock::time_point failed_at_{};  // when failure_ was set first
};

}  // namespace cohort::tools
