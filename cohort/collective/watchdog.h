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
  // Call it every `interval` with all unfinished collectives of `group`. A collective waits if its DescribeWait() is
  // not "". Logs a collective if it waits in this call and waited in the previous call. Logs it again each time that
  // its age has doubled. Each call of Update writes at most one line. If several collectives are to be logged, the line
  // describes the first of them and says how many more there are.
  void Update(const std::string& group, std::chrono::milliseconds interval,
              const std::vector<std::shared_ptr<UnfinishedCollective>>& unfinished);

 private:
  struct Seen {
    std::weak_ptr<UnfinishedCollective> call;
    int64_t updates = 0;      // calls of Update since the call that saw it first
    int64_t next_report = 1;  // value of `updates` at the next log line
  };
  std::map<const UnfinishedCollective*, Seen> seen_;  // the collectives of the previous update
};

// Finds collectives that make no progress. The watchdog's thread owns it. Not thread-safe.
class StuckCallSearch {
 public:
  // Call it regularly with all unfinished collectives of a group. Returns a collective whose stamp has been the same
  // for at least `limit`, and that waits, or null if there is none.
  std::shared_ptr<UnfinishedCollective> Find(std::chrono::milliseconds limit,
                                             const std::vector<std::shared_ptr<UnfinishedCollective>>& unfinished);

 private:
  struct Seen {
    std::weak_ptr<UnfinishedCollective> call;
    uint64_t stamp = 0;
    std::chrono::steady_clock::time_point since;
  };
  std::map<const UnfinishedCollective*, Seen> seen_;  // of the previous call
};

// Watches the collectives of one group on a thread of its own. It does not own the collectives. The group owns it.
// Thread-safe, except Start and Join. End it with Stop, then Join.
class Watchdog {
 public:
  struct Limits {
    std::chrono::milliseconds timeout{0};        // the longest time for one collective; 0: no limit
    std::chrono::milliseconds late_interval{0};  // the time between two calls of LateCallReport::Update; 0: no reports
    std::chrono::milliseconds progress{0};       // the longest time without progress; 0: no limit
  };
  // Functions of the group that the watchdog calls, on its own thread.
  struct Callbacks {
    // Returns the collectives that have begun and not ended.
    std::function<std::vector<std::shared_ptr<UnfinishedCollective>>()> unfinished;
    // Makes the group fail, because `call` takes too long. The watchdog calls it if the time limit that Watch has set
    // for `call` has passed and call.DescribeWait() is not "". `wait` is the result of DescribeWait().
    std::function<void(const UnfinishedCollective& call, const std::string& wait)> on_timeout;
    // `call` has made no progress for Limits::progress. The function may take some seconds to ask the members that it
    // waits for. Then it makes the group fail, unless `call` has made progress meanwhile.
    std::function<void(const UnfinishedCollective& call)> on_stuck;
    // Looks for programs that hang. It is called as often as stuck collectives are looked for, also after the group has
    // failed, and may take some seconds.
    std::function<void()> look_for_hangs;
  };

  // `group` is the group's name in the log. Starts no thread.
  Watchdog(std::string group, const Limits& limits, Callbacks callbacks);
  // Requires: Join has returned, or Start was not called.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Starts the thread if at least one of the limits is not 0. Call at most once.
  void Start();
  // Gives `call` a time limit: Limits::timeout + `longer`, from now on. When the limit has passed, the thread calls
  // on_timeout if call->DescribeWait() is not "". Does nothing if Limits::timeout is 0.
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
  // Waits for the next deadline, or until `next`. Returns false after Stop. Sets `overdue` to a collective whose
  // deadline has passed, if there is one.
  bool AwaitNext(std::chrono::steady_clock::time_point next, std::shared_ptr<UnfinishedCollective>* overdue)
      COHORT_EXCLUDES(mu_);

  const std::string group_;
  const Limits limits_;
  const Callbacks callbacks_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Watched> watched_ COHORT_GUARDED_BY(mu_);  // sorted by deadline
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace cohort::collective
