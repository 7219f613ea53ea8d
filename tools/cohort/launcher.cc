// A launch goes through the phases of launcher.h. Run starts all tasks. Then it waits for events again and again:
// signals, ends of tasks, and output. After each event it reaps tasks, restarts or fails, and Advance decides on the
// next phase. Leftovers are processes that tasks have started and not waited for.
#include "tools/cohort/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "cohort/cluster/status/cluster_file.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "tools/cohort/process_tree.h"

namespace cohort::tools {
namespace {

using Seconds = std::chrono::duration<double>;

// The time for processes that a task has started and not waited for, such as a `tee` that is still writing.
constexpr Seconds kLeftoverTime{1};
constexpr Seconds kKillTime{30};
// An end so soon after the failure of another task follows from it.
constexpr Seconds kFollows{10};
// A process that a signal kills takes a moment to end, in which others may see the end of its sockets, and fail first.
constexpr Seconds kCause{1};
constexpr int kSignalled = 128;                   // exit codes above it say that a signal has ended a task
constexpr std::chrono::seconds kStoppedCheck{1};  // between two looks at a task that is stopped and has no Server
constexpr Seconds kStoppedTold{3};                // it is named after this time

// Returns the deadline for processes to end after SIGKILL. Only a process that hangs in the kernel needs so long.
std::chrono::steady_clock::time_point KillDeadline() {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(kKillTime);
}

// Returns the wait status that waitpid would give for `info`.
int StatusOf(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
}

std::string LogPath(const std::string& folder, const TaskId& task) {
  return folder.empty() ? "" : (std::filesystem::path(folder) / task.FileName()).string();
}

void MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw UnavailableError(StrCat("[launch] expected a folder --output_dir=", folder, "; got: ", error.message()));
  }
}

}  // namespace

Launcher::Launcher(const LaunchOptions& options, int parent_fd, const LaunchCertificates* certificates)
    : options_(options),
      parent_fd_(parent_fd),
      certificates_(certificates),
      plan_(options),
      token_file_(plan_.OwnToken()),
      health_(options.unhealthy_after),
      output_(STDOUT_FILENO, STDERR_FILENO, options.color) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);  // the signals that RunWatched has blocked
  signal_fd_ = signalfd(-1, &blocked, SFD_NONBLOCK | SFD_CLOEXEC);
  ended_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (signal_fd_ < 0 || ended_fd_ < 0) {
    throw UnavailableError(
        StrCat("[launch] expected descriptors for events; got: ", std::strerror(errno), "; see ulimit -n"));
  }
}

Launcher::~Launcher() {
  close(signal_fd_);
  close(ended_fd_);
}

int Launcher::Run() {
  if (!options_.output_dir.empty()) MakeFolder(options_.output_dir);
  if (!options_.logdir.empty()) {
    WriteClusterFile(options_.logdir, {.cluster = plan_.Cluster(), .token_file = token_file_.path()});
  }
  for (const TaskId& id : plan_.tasks()) {
    tasks_.push_back({.id = id, .failures = RestartRecord(options_.restart_window)});
    output_.AddTask(id.Name(), LogPath(options_.output_dir, id));
  }
  if (StartAll()) {
    while (phase_ != Phase::kDone) {
      WaitForEvents();
      HandleSignals();
      ReapTasks();
      ReapOrphans();
      CheckHealth();
      StartAgain();
      Advance();
    }
  }
  KillWhatIsLeft();
  output_.CloseStreams();
  FlushOutput();
  if (stop_signal_ != 0) return terminating_ && all_ended_well_ && !failure_ ? 0 : 128 + stop_signal_;
  return failure_.value_or(0);
}

// Returns false if the program cannot be run. Then no task is running.
bool Launcher::StartAll() {
  try {
    program_ = FindProgram(options_.command[0]);
    for (size_t task = 0; task < tasks_.size(); ++task) Start(task);
    if (health_.name().empty()) SayHowToLook();  // else when a task has called
    return true;
  } catch (const ProgramError& e) {
    output_.Say(e.message);
    failure_ = e.exit_code;
  } catch (const Error& e) {
    output_.Say(e.what());
    failure_ = 1;
  }
  return false;
}

void Launcher::Start(size_t task) {
  Environment environment = plan_.EnvironmentOf(task);
  if (output_.shows_bars()) SetProgressBars(&environment);
  if (certificates_ != nullptr) certificates_->SetFiles(tasks_[task].id, &environment);
  if (!token_file_.path().empty()) environment["COHORT_TOKEN_FILE"] = token_file_.path();
  environment["COHORT_RESTARTS"] = StrCat(tasks_[task].starts++);
  health_.Renew(task);
  if (health_.name().empty()) {
    environment.erase("COHORT_HEALTH");  // of a launcher that runs this one
  } else {
    environment["COHORT_HEALTH"] = health_.name();
  }
  const Process process = StartProcess(program_, options_.command, environment);
  tasks_[task].pid = process.pid;
  tasks_[task].pid_fd = process.pid_fd;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = task}};
  epoll_ctl(ended_fd_, EPOLL_CTL_ADD, process.pid_fd, &event);
  tasks_[task].start = Clock::now();
  output_.AddStream(task, false, process.out_fd);
  output_.AddStream(task, true, process.err_fd);
}

void Launcher::WaitForEvents() {
  std::vector<pollfd> entries{
      {signal_fd_, POLLIN, 0}, {parent_gone_ ? -1 : parent_fd_, POLLIN, 0}, {ended_fd_, POLLIN, 0}};
  output_.AddPollEntries(&entries);
  health_.AddPollEntries(&entries);
  int timeout_ms = -1;
  Clock::time_point next = std::min(phase_end_, health_.next_update());
  for (const Task& task : tasks_) {
    next = std::min({next, task.start_again.value_or(next), task.kill_at.value_or(next)});
    if (task.stopped_since) next = std::min(next, Clock::now() + kStoppedCheck);
  }
  if (next != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    timeout_ms = static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
  }
  if (poll(entries.data(), entries.size(), timeout_ms) <= 0) return;
  if (entries[1].revents != 0) {
    parent_gone_ = true;
    stop_signal_ = SIGKILL;
    EnterKill();
  }
  output_.HandleEvents(entries);
}

void Launcher::HandleSignals() {
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGCHLD) HandleSignal(static_cast<int>(info.ssi_signo));
  }
}

void Launcher::HandleSignal(int signal) {
  const bool second = stop_signal_ != 0;
  if (!second) stop_signal_ = signal;
  const std::string name = StrCat("got SIG", sigabbrev_np(signal));
  if (phase_ == Phase::kDone) return;  // only output is left to write; FlushOutput now stops writing it
  if (second || phase_ >= Phase::kKill) {
    output_.Say(StrCat(name, "; killing what is left"));
    EnterKill();
  } else if (phase_ == Phase::kTerm) {
    output_.Say(StrCat(name, "; ", RunningNames(), " got SIGTERM already"));
  } else {
    EnterTerm(name + "; ");
  }
}

// Reaps tasks in the order of their ends, so that the launch names the task that failed first, and not one that failed
// because of it.
void Launcher::ReapTasks() {
  epoll_event events[64];
  const int count = epoll_wait(ended_fd_, events, std::size(events), 0);
  for (int i = 0; i < count; ++i) {
    const size_t which = events[i].data.u64;
    Task& task = tasks_[which];
    // The status is read before the task is reaped. Until then no other process group can get its number.
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(task.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      continue;
    UpdateHealth();  // it may have said that training is done, and its process group is known until it is reaped
    const bool failed = info.si_code != CLD_EXITED || info.si_status != 0;
    int wait_status = 0;
    if (failed && WillRestart(task, StatusOf(info))) {
      // Processes that the task has started must not disturb its next start, or hold its port.
      wait_status = KillGroup(task.pid, KillDeadline());
    } else {
      waitpid(task.pid, &wait_status, 0);
    }
    close(task.pid_fd);  // this also removes it from ended_fd_
    HandleEnd(which, wait_status);
  }
}

// Reaps processes that tasks have started, and whose parent this process has become.
void Launcher::ReapOrphans() {
  const auto is_task = [this](pid_t pid) {
    return std::any_of(tasks_.begin(), tasks_.end(), [pid](const Task& task) { return task.pid == pid; });
  };
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    if (is_task(info.si_pid)) return;  // it has ended since ReapTasks, which will reap it
    waitpid(info.si_pid, nullptr, 0);
    info = {};
  }
}

void Launcher::HandleEnd(size_t task, int wait_status) {
  Task& ended = tasks_[task];
  const std::string what = StrCat(ended.id.Name(), " (pid ", ended.pid, ") ", DescribeEnd(wait_status), " after ",
                                  OneDecimal(Clock::now() - ended.start));
  ended.pid = -1;
  health_.Forget(task);
  output_.DrainTask(task);
  // The chief has saved. A worker that only serves has nothing to save, and ends by the signal.
  const bool served = RankOf(ended) == Rank::kWorker && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGTERM;
  const bool was_done = ended.kill_at.has_value();
  ended.kill_at.reset();
  if (stop_signal_ != 0 && wait_status != 0 && !ended.id.IsPs() && !served && !was_done) all_ended_well_ = false;
  if (wait_status == 0 || phase_ >= Phase::kTerm) return;
  if (was_done) return output_.Say(StrCat(what, "; training is done, so this is not a failure"));
  if (WillRestart(ended, wait_status)) return PlanRestart(task, what, wait_status);
  const bool others_wait = phase_ == Phase::kRunning && AnyRunning(true);
  output_.Say(others_wait ? StrCat(what, "; the others have ", OneDecimal(options_.grace), " to end by themselves")
                          : what);
  Fail(ExitCodeOf(wait_status));
}

void Launcher::Fail(int exit_code) {
  const Clock::time_point now = Clock::now();
  const bool is_cause = failure_ && *failure_ < kSignalled && exit_code > kSignalled && now - failed_at_ < kCause;
  if (!failure_) failed_at_ = now;
  if (!failure_ || is_cause) failure_ = exit_code;
  if (phase_ == Phase::kRunning) Enter(Phase::kGrace, options_.grace);
}

bool Launcher::FollowsFromAnother(const Task& task, int wait_status) const {
  if (!WIFEXITED(wait_status)) return false;
  const Clock::time_point since = Clock::now() - std::chrono::duration_cast<Clock::duration>(kFollows);
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [&](const Task& other) { return &other != &task && other.failures.HasCountedSince(since); });
}

bool Launcher::WillRestart(const Task& task, int wait_status) const {
  if (phase_ != Phase::kRunning || options_.restarts == 0 || task.kill_at) return false;
  return task.failures.Counted(Clock::now()) < options_.restarts || FollowsFromAnother(task, wait_status);
}

void Launcher::PlanRestart(size_t task, const std::string& what, int wait_status) {
  Task& failed = tasks_[task];
  const Clock::time_point now = Clock::now();
  const bool follows = FollowsFromAnother(failed, wait_status);
  const Seconds pause = failed.failures.Add(now, !follows);
  failed.start_again = now + std::chrono::duration_cast<Clock::duration>(pause);
  const std::string count = follows ? "this follows from the end of another task, and does not count"
                                    : StrCat(failed.failures.Counted(now), " of ", options_.restarts);
  output_.Say(StrCat(what, "; starting it again in ", OneDecimal(pause), " (", count, ")"));
}

void Launcher::StartAgain() {
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (!tasks_[task].start_again || Clock::now() < *tasks_[task].start_again) continue;
    tasks_[task].start_again.reset();
    if (phase_ != Phase::kRunning) continue;
    try {
      Start(task);
    } catch (const ProgramError& e) {
      output_.Say(e.message);
      Fail(e.exit_code);
    } catch (const Error& e) {
      output_.Say(e.what());
      Fail(1);
    }
  }
}

bool Launcher::TrainingIsDone() const {
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (RankOf(tasks_[task]) == Rank::kChief && health_.training_done(task)) return true;
  }
  return false;
}

void Launcher::UpdateHealth() {
  health_.Update([this](pid_t group) -> std::optional<size_t> {
    const auto task = std::ranges::find(tasks_, group, &Task::pid);
    if (group <= 0 || task == tasks_.end()) return std::nullopt;
    return static_cast<size_t>(task - tasks_.begin());
  });
}

void Launcher::CheckHealth() {
  UpdateHealth();
  if (health_.knows_any()) SayHowToLook();
  for (const Task& task : tasks_) {
    if (task.kill_at && Clock::now() >= *task.kill_at) Signal(task, SIGKILL);
  }
  if (phase_ != Phase::kRunning || health_.name().empty()) return;
  for (const HealthCheck::Report& news : health_.TakeNews()) {
    output_.Say(StrCat(tasks_[news.task].id.Name(), " ", news.what));
  }
  const bool done = TrainingIsDone();
  // The chief may still have work to do after it has said that training is done, such as an export.
  const auto is_chief = [this](const HealthCheck::Report& silent) {
    return RankOf(tasks_[silent.task]) == Rank::kChief;
  };
  for (const HealthCheck::Report& silent : health_.SilentFor(options_.unhealthy_after)) {
    EndUnhealthy(silent, done && !is_chief(silent));
  }
  if (done) {
    for (const HealthCheck::Report& silent : health_.SilentFor(std::min(options_.grace, options_.unhealthy_after))) {
      if (!is_chief(silent)) EndUnhealthy(silent, true);
    }
  }
  if (health_.knows_any()) CheckStopped(done);
}

void Launcher::CheckStopped(bool training_is_done) {
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    if (task.pid < 0 || task.kill_at || health_.knows(i) || !HealthCheck::IsStopped(task.pid)) {
      task.stopped_since.reset();
      task.stop_told = false;
      continue;
    }
    if (!task.stopped_since) task.stopped_since = now;
    const Seconds stopped = now - *task.stopped_since;
    const HealthCheck::Report report{i, StrCat("(pid ", task.pid, ") is stopped (state T) for ", OneDecimal(stopped))};
    const bool done = training_is_done && RankOf(task) != Rank::kChief;
    if (stopped >= (done ? std::min(options_.grace, options_.unhealthy_after) : options_.unhealthy_after)) {
      EndUnhealthy(report, done);
    } else if (stopped >= kStoppedTold && !task.stop_told) {
      output_.Say(StrCat(task.id.Name(), " ", report.what));
      task.stop_told = true;
    }
  }
}

void Launcher::SayHowToLook() {
  if (std::exchange(said_how_to_look_, true)) return;
  const std::string tls = certificates_ == nullptr ? "" : StrCat("COHORT_TLS_FOLDER=", certificates_->folder(), " ");
  const std::string token = token_file_.path().empty() ? "" : StrCat("COHORT_TOKEN_FILE=", token_file_.path(), " ");
  const ClusterSpec cluster = plan_.Cluster();
  const auto [job, index] = cluster.tasks().front();
  output_.Say(options_.logdir.empty()
                  ? StrCat("look at the tasks: ", tls, token, "cohort status ", cluster.task_address(job, index))
                  : StrCat("look at the tasks: ", tls, "cohort status --logdir=", options_.logdir));
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const std::string address = plan_.MetricsAddress(task);
    if (!address.empty()) output_.Say(StrCat("metrics of ", tasks_[task].id.Name(), ": ", address));
  }
}

void Launcher::EndUnhealthy(const HealthCheck::Report& silent, bool training_is_done) {
  Task& task = tasks_[silent.task];
  health_.Forget(silent.task);
  if (training_is_done) {
    output_.Say(StrCat(task.id.Name(), " ", silent.what, ", and training is done; sending SIGTERM"));
    task.kill_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.kill_after);
    Signal(task, SIGTERM);
  } else {
    output_.Say(StrCat(task.id.Name(), " ", silent.what, "; killing it (see --unhealthy_after)"));
    Signal(task, SIGKILL);
  }
}

void Launcher::Advance() {
  const bool late = Clock::now() >= phase_end_;
  if (phase_ < Phase::kLeftovers && !AnyRunning(true)) {
    const bool end_now = phase_ == Phase::kKill || Children().empty();
    const Seconds wait = phase_ == Phase::kTerm ? Seconds(0) : kLeftoverTime;
    return Enter(end_now ? Phase::kDone : Phase::kLeftovers, wait);
  }
  switch (phase_) {
    case Phase::kRunning:
      if (!AnyRunning(false) && tasks_.size() > static_cast<size_t>(options_.jobs.ps)) {
        Enter(Phase::kGrace, options_.grace);
      }
      return;
    case Phase::kGrace:
      if (!late) return;
      output_.Say(StrCat(RunningNames(), " did not end within ", OneDecimal(options_.grace), "; sending SIGTERM"));
      EnterTerm("");
      return;
    case Phase::kTerm: return AdvanceTerm(late);
    case Phase::kKill:
      if (late) Enter(Phase::kDone, Seconds(0));
      return;
    case Phase::kLeftovers:
    case Phase::kLeftoversTerm: return AdvanceLeftovers(late);
    case Phase::kDone: return;
  }
}

void Launcher::AdvanceTerm(bool late) {
  if (terminating_ && *terminating_ != Rank::kServer && !AnyRunning(*terminating_)) return TerminateNextRank("");
  if (!late) return;
  const Seconds limit = terminating_ == Rank::kChief ? ChiefsLimit() : Seconds(options_.kill_after);
  const std::string what = StrCat(RunningNames(), " did not end within ", OneDecimal(limit), " of SIGTERM; ");
  // The ps tasks get no SIGTERM before the others have ended, because those may still save what lies on the ps.
  if (terminating_ == Rank::kChief && AnyRunning(Rank::kWorker)) return TerminateNextRank(what);
  output_.Say(what + "sending SIGKILL");
  EnterKill();
}

void Launcher::AdvanceLeftovers(bool late) {
  const std::vector<pid_t> left = Children();
  if (left.empty() || (late && phase_ == Phase::kLeftoversTerm)) return Enter(Phase::kDone, Seconds(0));
  if (phase_ == Phase::kLeftovers) {
    if (!late) return;
    output_.Say(StrCat("sending SIGTERM to what the tasks have left behind (pid ", StrJoin(left, ", "), ")"));
    Enter(Phase::kLeftoversTerm, options_.kill_after);
  }
  // If one of them ends, its children become children of this process. They get the signal when they appear here.
  for (const pid_t pid : left) {
    if (terminated_.insert(pid).second) kill(pid, SIGTERM);
  }
}

void Launcher::Enter(Phase phase, Seconds limit) {
  phase_ = phase;
  for (Task& task : tasks_) {  // nothing is started again any more
    if (!task.start_again) continue;
    task.start_again.reset();
    all_ended_well_ = false;
  }
  phase_end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
}

void Launcher::EnterTerm(const std::string& why) {
  if (stop_signal_ != 0) return TerminateNextRank(why);
  SignalTasks(SIGTERM);
  if (phase_ < Phase::kTerm) Enter(Phase::kTerm, options_.kill_after);
}

Launcher::Rank Launcher::RankOf(const Task& task) const {
  if (task.id.IsPs()) return Rank::kServer;
  const bool has_chief = options_.jobs.chief > 0;
  const bool is_chief = has_chief ? task.id.job == "chief" : task.id.job == "worker" && task.id.index == 0;
  return is_chief ? Rank::kChief : Rank::kWorker;
}

Seconds Launcher::ChiefsLimit() const { return std::max(options_.grace, options_.kill_after); }

void Launcher::TerminateNextRank(const std::string& why) {
  do {
    terminating_ = terminating_ ? static_cast<Rank>(static_cast<int>(*terminating_) + 1) : Rank::kChief;
  } while (!AnyRunning(*terminating_) && *terminating_ != Rank::kServer);
  std::vector<std::string> now, later;
  for (int rank = static_cast<int>(*terminating_); rank <= static_cast<int>(Rank::kServer); ++rank) {
    for (const Task& task : tasks_) {
      if (task.pid < 0 || RankOf(task) != static_cast<Rank>(rank)) continue;
      (RankOf(task) == *terminating_ ? now : later).push_back(task.id.Name());
      if (RankOf(task) == *terminating_) Signal(task, SIGTERM);
    }
  }
  if (!why.empty()) {
    output_.Say(StrCat(why, "sending SIGTERM to ", now.empty() ? "no task" : StrJoin(now, ", "),
                       later.empty() ? "" : ", then to ", StrJoin(later, ", ")));
  }
  Enter(Phase::kTerm, *terminating_ == Rank::kChief ? ChiefsLimit() : Seconds(options_.kill_after));
}

void Launcher::EnterKill() {
  SignalTasks(SIGKILL);
  if (phase_ < Phase::kKill) {
    Enter(Phase::kKill, kKillTime);
  } else if (phase_ > Phase::kKill) {
    Enter(Phase::kDone, Seconds(0));
  }
}

void Launcher::Signal(const Task& task, int signal) {
  if (task.pid < 0) return;
  kill(-task.pid, signal);
  if (signal == SIGTERM) kill(-task.pid, SIGCONT);  // a stopped process handles SIGTERM only when it goes on
}

void Launcher::SignalTasks(int signal) {
  for (const Task& task : tasks_) Signal(task, signal);
}

void Launcher::KillWhatIsLeft() {
  const std::vector<pid_t> alive = KillDescendants(KillDeadline());
  if (!alive.empty()) {
    output_.Say(StrCat("could not kill pid ", StrJoin(alive, ", "), " within ", OneDecimal(kKillTime),
                       ": the kernel holds it"));
  }
}

// Waits until the reader of stdout and stderr has taken all output. A signal, or the parent's end, stops the wait.
void Launcher::FlushOutput() {
  phase_end_ = stop_signal_ == 0 ? Clock::time_point::max()
                                 : Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.kill_after);
  const int signals_before = stop_signal_;
  while (!output_.flushed() && !parent_gone_ && Clock::now() < phase_end_) {
    WaitForEvents();
    HandleSignals();
    if (stop_signal_ != signals_before) return;
  }
}

bool Launcher::AnyRunning(bool ps_too) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& t) {
    const bool restarts = phase_ == Phase::kRunning && t.start_again.has_value();
    return (t.pid >= 0 || restarts) && (ps_too || !t.id.IsPs());
  });
}

bool Launcher::AnyRunning(Rank rank) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& t) { return t.pid >= 0 && RankOf(t) == rank; });
}

std::string Launcher::RunningNames() const {
  std::vector<std::string> names;
  for (const Task& task : tasks_) {
    if (task.pid >= 0) names.push_back(task.id.Name());
  }
  return names.empty() ? "no task" : StrJoin(names, ", ");
}

}  // namespace cohort::tools
