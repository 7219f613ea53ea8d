// LeaseTable: which client has which sessions open on this task.
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

// A session's plans and step state on a task live as long as its lease. A lease belongs to a client, not to a
// connection: it ends when the client closes the session, or when the client's last connection has closed and the
// client has not connected again within the reconnect limit. Owned by the StepService. Thread-safe.
class LeaseTable {
 public:
  // `on_ended` is called once for each lease that ends, on the thread that ends it or on the table's own. It may do
  // quick work only. The lease is there until Erase. `on_count` is called under the table's lock with the number of
  // leases that are there, if it changes; it must not call the table. Zero limit: a lease ends at once with its
  // client's last connection.
  LeaseTable(std::chrono::milliseconds reconnect_limit, std::function<void(uint64_t session)> on_ended,
             std::function<void(size_t count)> on_count)
      : reconnect_limit_(reconnect_limit), on_ended_(std::move(on_ended)), on_count_(std::move(on_count)) {}
  // Stops.
  ~LeaseTable() { Stop(); }

  // `client`, which is connected, holds `session` from now on. A second call changes nothing.
  void Hold(uint64_t session, const ClientId& client) COHORT_EXCLUDES(mu_);
  void OnConnected(const ClientId& client) COHORT_EXCLUDES(mu_);
  // The client's last connection has closed.
  void OnGone(const ClientId& client) COHORT_EXCLUDES(mu_);
  // The client closes the session. An unknown session is ignored.
  void End(uint64_t session) COHORT_EXCLUDES(mu_);
  // What was under way for an ended lease has ended too.
  void Erase(uint64_t session) COHORT_EXCLUDES(mu_);

  // Whether the session's lease has ended. False for a session without a lease.
  bool HasEnded(uint64_t session) COHORT_EXCLUDES(mu_);
  // Forgets all leases without a call of on_ended, and joins the table's thread. Idempotent.
  void Stop() COHORT_EXCLUDES(mu_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Lease {
    ClientId client;
    std::optional<Clock::time_point> expiry;  // set while the client is not connected
    bool ended = false;
  };

  // Ends the leases of gone clients when their time is up.
  void RunExpiry() COHORT_EXCLUDES(mu_);

  const std::chrono::milliseconds reconnect_limit_;
  const std::function<void(uint64_t session)> on_ended_;
  const std::function<void(size_t count)> on_count_;
  Mutex mu_;
  CondVar changed_;
  std::map<uint64_t, Lease> leases_ COHORT_GUARDED_BY(mu_);  // by session
  std::thread expiry_ COHORT_GUARDED_BY(mu_);                // started with the first gone client
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
