// Launcher: starts the tasks of a local cluster, and waits until all of them have ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/cluster/port_reservation.h"
#include "tools/cohort/launch_layout.h"
#include "tools/cohort/output_mux.h"
#include "tools/cohort/process.h"

namespace cohort::tools {

struct LaunchOptions {
  JobCounts jobs;
  int restarts = 0;                             // how many times each failed task is started again
  std::chrono::duration<double> grace{10};      // the time that tasks have to end by themselves after a failure
  std::chrono::duration<double> kill_after{5};  // between SIGTERM and SIGKILL
  std::optional<int> threads_per_task;          // replaces a share of the cores
  std::optional<double> orphan_timeout;         // seconds; COHORT_ORPHAN_TIMEOUT of every task
  std::optional<double> chief_timeout;          // seconds; COHORT_CHIEF_TIMEOUT of every task
  ColorMode color = ColorMode::kAuto;
  std::string output_dir;            // if set, each task also has a log file there; made if missing
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

 private:
  std::vector<TaskId> tasks_;
  std::vector<PortReservation> ports_;
  std::vector<std::string> addresses_;
  CoreDivision division_;
  bool threads_are_fixed_;
  std::optional<double> orphan_timeout_;
  std::optional<double> chief_timeout_;
  std::string token_;
  std::string run_id_;
};

// Runs one launch, on one thread. Requires: it runs inside RunWatched (process_tree.h).
//
// A task has failed if its exit code is not 0. If it has restarts left, it is started again, and the other tasks go on.
// Otherwise the launch has failed. The launcher then names the first such task. The other tasks have `grace` to end by
// themselves. Then they get SIGTERM, and `kill_after` later SIGKILL.
// When all tasks except ps tasks have ended with code 0, a ps has `grace` to end, too. Then it gets SIGTERM, which is
// not a failure. A signal to the launcher skips the grace. After a second signal the tasks get SIGKILL.
class Launcher {
 public:
  // `parent_fd` is the argument that RunWatched passes.
  Launcher(const LaunchOptions& options, int parent_fd);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Returns the exit code: 0 if every task has ended with 0, the first failed task's code (128 + signal if a signal
  // ended it), 128 + signal if the launcher got a signal, or 126 or 127 if the program cannot be run. No descendant
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
    int restarts = 0;
    Clock::time_point start;
  };

  bool StartAll();
  void Start(size_t task);
  void WaitForEvents();
  void HandleSignals();
  void HandleSignal(int signal);
  void ReapTasks();
  void ReapOrphans();
  void HandleEnd(size_t task, int wait_status);
  void Fail(int exit_code);
  bool WillRestart(const Task& task) const;
  void Restart(size_t task, const std::string& what);
  // Enters the next phase if the condition of this phase is met or its time is over.
  void Advance();
  void AdvanceLeftovers(bool late);
  void Enter(Phase phase, std::chrono::duration<double> limit);
  void EnterTerm();
  void EnterKill();
  void SignalTasks(int signal);
  void KillWhatIsLeft();
  void FlushOutput();
  bool AnyRunning(bool ps_too) const;
  std::string RunningNames() const;

  const LaunchOptions options_;
  const int parent_fd_;
  int signal_fd_ = -1;
  int ended_fd_ = -1;  // an epoll of the tasks' pid_fd; returns them in the order in which the tasks end
  bool parent_gone_ = false;
  int stop_signal_ = 0;  // the first signal that the launcher got
  LaunchPlan plan_;
  OutputMux output_;
  std::string program_;
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  Clock::time_point phase_end_ = Clock::time_point::max();
  std::set<pid_t> terminated_;  // leftovers that got SIGTERM
  std::optional<int> failure_;  // exit code of the first failed task
};

}  // namespace cohort::tools
