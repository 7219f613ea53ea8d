// TcpProxy: a link between a task and its peers that a test can make slow or cut. Peers dial address(). The proxy
// forwards bytes in both directions between them and the target.
#pragma once

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort::testing {

class TcpProxy {
 public:
  // `target_port` is a port of 127.0.0.1. Nothing needs to listen on it yet. `bytes_per_second` limits each direction,
  // for all connections together. 0: there is no limit.
  TcpProxy(int target_port, int64_t bytes_per_second = 0);
  // Closes all connections.
  ~TcpProxy();

  // Returns "127.0.0.1:port", the address on which the proxy listens.
  std::string address() const;
  // From now on no byte arrives, and no connection ends, as if a cable had been pulled out.
  void Cut() { SetCut(true); }
  void Heal() { SetCut(false); }
  // As Cut, for one connection. Connections are numbered from 0 in the order in which they were made.
  void CutOnly(int connection) COHORT_EXCLUDES(mu_);
  // Connects later connections with this port of 127.0.0.1. Earlier ones stay as they are.
  void Retarget(int target_port) { target_port_ = target_port; }
  // Closes later connections as soon as they are made.
  void AcceptAtMost(int connections) COHORT_EXCLUDES(mu_);
  // Changes one bit in the middle of the next piece of at least 4 KiB that passes.
  void DamageOnePiece() { damage_ = true; }
  int64_t bytes_forwarded() const { return forwarded_; }

 private:
  struct Direction {
    std::chrono::steady_clock::time_point free_at;  // when all bytes so far have passed
  };
  struct Link;

  void SetCut(bool cut);
  void AcceptLoop();
  // Returns the number of a new connection, or -1 if there are too many.
  int Number() COHORT_EXCLUDES(mu_);
  void Forward(const std::shared_ptr<Link>& link, int from, int to, int direction);
  // Waits until `bytes` may pass. Returns false if the proxy ends.
  bool Pass(const Link& link, int direction, size_t bytes) COHORT_EXCLUDES(mu_);

  std::atomic<int> target_port_;
  const int64_t bytes_per_second_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int64_t> forwarded_{0};
  std::atomic<bool> damage_{false};
  Mutex mu_;
  CondVar changed_;
  bool cut_ COHORT_GUARDED_BY(mu_) = false;
  int cut_only_ COHORT_GUARDED_BY(mu_) = -1;
  int accepted_ COHORT_GUARDED_BY(mu_) = 0;
  int at_most_ COHORT_GUARDED_BY(mu_) = INT_MAX;
  bool ended_ COHORT_GUARDED_BY(mu_) = false;
  Direction directions_[2] COHORT_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Link>> links_ COHORT_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ COHORT_GUARDED_BY(mu_);
  std::thread acceptor_;
};

}  // namespace cohort::testing
