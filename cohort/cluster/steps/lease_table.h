// LeaseTable: which client has which sessions on this task.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/client_id.h"

namespace cohort {

// The leases of sessions. A session's plans and its state on this task exist as long as its lease. A lease belongs to a
// client, not to a connection. It ends if the client closes the session. It also ends if the client's last connection
// has closed and the client does not connect again within the reconnect limit. The StepService owns the table.
// Thread-safe.
class LeaseTable {
 public:
  // `on_ended` is called once for each lease that ends before Stop, on the thread that calls End or OnGone, or on the
  // table's own thread. It must be quick. A lease that has ended stays in the table until Erase. `on_count` is given
  // the number of leases in the table, for the ChiefWatch: after training is done, the task serves until this number is
  // 0. It is called under the table's lock when the number has changed, and by each Stop; it must not call the table.
  // If the reconnect limit is zero, a lease ends when its client's last connection has closed.
  LeaseTable(std::chrono::milliseconds reconnect_limit, std::function<void(uint64_t session)> on_ended,
             std::function<void(size_t count)> on_count)
      : reconnect_limit_(reconnect_limit), on_ended_(std::move(on_ended)), on_count_(std::move(on_count)) {}
  // Calls Stop.
  ~LeaseTable() { Stop(); }

  // Gives `session` a lease that belongs to `client`. Does nothing if the session is in the table already. Requires:
  // `client` is connected.
  void Hold(uint64_t session, const ClientId& client) COHORT_EXCLUDES(mu_);
  // The client has connected. Its leases that have not ended stay.
  void OnConnected(const ClientId& client) COHORT_EXCLUDES(mu_);
  // The last connection of the client has closed. Its leases end after the reconnect limit, unless OnConnected is
  // called before.
  void OnGone(const ClientId& client) COHORT_EXCLUDES(mu_);
  // The client closes the session. Ends the session's lease. Does nothing if there is none, or if it has ended.
  void End(uint64_t session) COHORT_EXCLUDES(mu_);
  // Removes the lease of a session from the table. Requires: the lease has ended, and so has the session's work.
  void Erase(uint64_t session) COHORT_EXCLUDES(mu_);

  // Returns whether the session's lease has ended. Returns false if the session has no lease.
  bool HasEnded(uint64_t session) COHORT_EXCLUDES(mu_);
  // A lease of the table.
  struct Entry {
    uint64_t session = 0;
    ClientId client;
    bool ended = false;
    std::optional<std::chrono::milliseconds> expires_in;  // set while the client is not connected
  };
  std::vector<Entry> List() COHORT_EXCLUDES(mu_);
  // Removes all leases without calls of on_ended, calls on_count(0), and joins the table's thread. Later calls of Hold,
  // OnGone, End and Erase do nothing. A later call of Stop, also the destructor's, only calls on_count(0).
  void Stop() COHORT_EXCLUDES(mu_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Lease {
    ClientId client;
    std::optional<Clock::time_point> expiry;  // set while the client is not connected
    bool ended = false;
  };

  // The loop of the table's thread. Ends leases whose client did not connect again in time.
  void RunExpiry() COHORT_EXCLUDES(mu_);

  const std::chrono::milliseconds reconnect_limit_;
  const std::function<void(uint64_t session)> on_ended_;
  const std::function<void(size_t count)> on_count_;
  Mutex mu_;
  CondVar changed_;
  std::map<uint64_t, Lease> leases_ COHORT_GUARDED_BY(mu_);  // by session
  std::thread expiry_ COHORT_GUARDED_BY(mu_);                // started when the first client has gone
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
