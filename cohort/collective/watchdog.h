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

// Says in the log which collectives are late and what they wait for. One thread at a time.
class LateCallReport {
 public:
  // Call every `interval` with all collectives of `group` that have not ended. Logs a collective that was there at the
  // call before and still waits, and logs it again each time that its age has doubled. If several are due at once, logs
  // the first one and how many more there are.
  void Update(const std::string& group, std::chrono::milliseconds interval,
              const std::vector<std::shared_ptr<UnfinishedCollective>>& unfinished);

 private:
  struct Seen {
    std::weak_ptr<UnfinishedCollective> call;
    int64_t updates = 0;      // since the first one that saw it
    int64_t next_report = 1;  // the value of `updates` at which it is logged
  };
  std::map<const UnfinishedCollective*, Seen> seen_;  // by the update before
};

// Watches the collectives of one group on a thread of its own. The group owns it. Thread-safe. It ends with Stop, then
// Join.
class Watchdog {
 public:
  struct Limits {
    std::chrono::milliseconds timeout{0};        // of each collective; 0: none
    std::chrono::milliseconds late_interval{0};  // between reports in the log; 0: no reports
  };
  // What the watchdog needs from its group. Both are called on its thread.
  struct Callbacks {
    std::function<std::vector<std::shared_ptr<UnfinishedCollective>>()> unfinished;
    // A collective has not ended in time. `wait` is its DescribeWait().
    std::function<void(const UnfinishedCollective& call, const std::string& wait)> on_timeout;
  };

  // `group` describes the group in the log. Starts no thread.
  Watchdog(std::string group, const Limits& limits, Callbacks callbacks);
  // Requires: Join has returned, or Start was not called.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Starts the thread if there is a limit. Call at most once.
  void Start();
  // If there is a timeout, calls on_timeout when `call` has not ended after timeout + `longer`.
  void Watch(const std::shared_ptr<UnfinishedCollective>& call, std::chrono::milliseconds longer) COHORT_EXCLUDES(mu_);
  // Makes the thread end; does not wait for it.
  void Stop() COHORT_EXCLUDES(mu_);
  void Join();
  bool IsOwnThread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  struct Watched {
    std::chrono::steady_clock::time_point deadline;
    std::weak_ptr<UnfinishedCollective> call;
  };

  void Loop() COHORT_EXCLUDES(mu_);
  // Waits for the next deadline or report. Returns false after Stop. Sets `overdue` to a collective whose deadline has
  // passed, and `report` if a report is due at `next_report`.
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
