// Watchdog: ends collectives that take longer than the group's timeout, and reports late ones in the log. Internal to
// collective/.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Logs which collectives are late and what they wait for. The watchdog's thread owns it. Not thread-safe.
class LateCallReport {
 public:
  // Call it every `interval` with all unfinished collectives of `group`. Logs a collective that was already there at
  // the previous call and still waits. Logs it again each time that its age has doubled. If several are due at once,
  // logs the first one and the number of the others.
  void Update(const std::string& group, std::chrono::milliseconds interval,
              const std::vector<std::shared_ptr<UnfinishedCollective>>& unfinished);

 private:
  struct Seen {
    std::weak_ptr<UnfinishedCollective> call;
    int64_t updates = 0;      // since the first one that saw it
    int64_t next_report = 1;  // value of `updates` at the next log line
  };
  std::map<const UnfinishedCollective*, Seen> seen_;  // the collectives of the previous update
};

// Watches the collectives of one group on a thread of its own. It does not own the collectives. The group owns it.
// Thread-safe, except Start and Join. End it with Stop, then Join.
class Watchdog {
 public:
  struct Limits {
    std::chrono::milliseconds timeout{0};        // the longest time for one collective; 0: no limit
    std::chrono::milliseconds late_interval{0};  // between reports in the log; 0: no reports
  };
  // Functions of the group that the watchdog calls, on its own thread.
  struct Callbacks {
    // Returns the collectives that have begun and not ended.
    std::function<std::vector<std::shared_ptr<UnfinishedCollective>>()> unfinished;
    // Called if a collective has not ended in time and its DescribeWait() is not "". `wait` is that text.
    std::function<void(const UnfinishedCollective& call, const std::string& wait)> on_timeout;
  };

  // `group` is the group's name in the log. Starts no thread.
  Watchdog(std::string group, const Limits& limits, Callbacks callbacks);
  // Requires: Join has returned, or Start was not called.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Starts the thread if at least one of the two limits is not 0. Call at most once.
  void Start();
  // Makes the thread call on_timeout if `call` has not ended after timeout + `longer` from now. Does nothing if there
  // is no timeout.
  void Watch(const std::shared_ptr<UnfinishedCollective>& call, std::chrono::milliseconds longer) COHORT_EXCLUDES(mu_);
  // Makes the thread end; does not wait for it.
  void Stop() COHORT_EXCLUDES(mu_);
  // Waits until the thread has ended. Requires: Stop was called, or there is no thread.
  void Join();
  bool IsOwnThread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  struct Watched {
    std::chrono::steady_clock::time_point deadline;
    std::weak_ptr<UnfinishedCollective> call;
  };

  void Loop() COHORT_EXCLUDES(mu_);
  // Waits for the next deadline or report. Returns false after Stop. Sets `overdue` to a collective whose deadline has
  // passed. Sets `report` if a report is due at `next_report`.
  bool AwaitNext(std::chrono::steady_clock::time_point next_report, std::shared_ptr<UnfinishedCollective>* overdue,
                 bool* report) COHORT_EXCLUDES(mu_);

  const std::string group_;
  const Limits limits_;
  const Callbacks callbacks_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Watched> watched_ COHORT_GUARDED_BY(mu_);  // by deadline
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace cohort::collective
