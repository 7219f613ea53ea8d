// The signal handler may only set flags and write to a pipe. A thread reads the pipe and calls the functions.
#include "cohort/core/process/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"

namespace cohort {
namespace {

constexpr unsigned kDefaultGrace = 60;  // seconds

// What the handler uses.
std::atomic<int> listeners{0};
std::atomic<int> received{0};  // the signal
std::atomic<unsigned> grace_seconds{kDefaultGrace};
std::atomic<int> pipe_to_thread{-1};

void Handle(int signal_number) {
  int none = 0;
  if (listeners.load() == 0 || !received.compare_exchange_strong(none, signal_number)) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    return;
  }
  const int error = errno;
  alarm(grace_seconds.load());
  [[maybe_unused]] const ssize_t written = write(pipe_to_thread.load(), "s", 1);
  errno = error;
}

// Never destroyed: its thread may run until the process ends.
class StopSignals {
 public:
  static StopSignals& Get() {
    static auto* const signals = new StopSignals();
    return *signals;
  }
  void Add(const std::function<void()>* function) COHORT_EXCLUDES(mu_) {
    bool called;
    {
      MutexLock lock(mu_);
      functions_.push_back(function);
      if (!installed_) Install();
      ++listeners;
      called = called_;
    }
    if (called) (*function)();  // otherwise the thread will find it
  }
  // The lock is held while functions are called, so none is running when this returns.
  void Remove(const std::function<void()>* function) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    functions_.erase(std::ranges::find(functions_, function));
    if (--listeners == 0 && received.load() != 0) alarm(0);
  }

 private:
  void Install() COHORT_REQUIRES(mu_) {
    installed_ = true;
    std::vector<int> signals;
    for (const int signal_number : {SIGTERM, SIGINT}) {
      struct sigaction now {};
      if (sigaction(signal_number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) continue;
      if (now.sa_handler == SIG_DFL) signals.push_back(signal_number);
    }
    int ends[2];
    if (signals.empty()) return;
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    if (const char* text = std::getenv("COHORT_STOP_GRACE")) {
      if (const int seconds = std::atoi(text); seconds > 0) grace_seconds = static_cast<unsigned>(seconds);
    }
    pipe_to_thread = ends[1];
    std::thread([this, from = ends[0]] { Call(from); }).detach();
    struct sigaction action {};
    action.sa_handler = Handle;
    action.sa_flags = SA_RESTART;
    for (const int signal_number : signals) sigaction(signal_number, &action, nullptr);
  }
  void Call(int from) COHORT_EXCLUDES(mu_) {
    char byte = 0;
    while (read(from, &byte, 1) < 0 && errno == EINTR) {
    }
    LogInfo("cohort", "Got ", StopSignal::Name(),
            ": the training stops after its step, and saves if this task writes checkpoints. A wait for other tasks "
            "ends now. A second signal ends the process at once");
    MutexLock lock(mu_);
    called_ = true;
    for (const std::function<void()>* function : functions_) (*function)();
  }

  Mutex mu_;
  bool installed_ COHORT_GUARDED_BY(mu_) = false;
  bool called_ COHORT_GUARDED_BY(mu_) = false;  // the thread has called the functions that were there, and has ended
  std::vector<const std::function<void()>*> functions_ COHORT_GUARDED_BY(mu_);
};

}  // namespace

StopSignal::StopSignal(std::function<void()> on_stop) : on_stop_(std::move(on_stop)) {
  StopSignals::Get().Add(&on_stop_);
}

StopSignal::~StopSignal() { StopSignals::Get().Remove(&on_stop_); }

bool StopSignal::Received() { return received.load() != 0; }

const char* StopSignal::Name() { return received.load() == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace cohort
