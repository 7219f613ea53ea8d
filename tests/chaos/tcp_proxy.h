// TcpProxy: a link between a task and its peers that can be slow, or cut. Peers dial address(); bytes go to the target.
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
  // `target`: a port of 127.0.0.1 that need not listen yet. `bytes_per_second`: of each direction, all connections
  // together; 0: no limit.
  TcpProxy(int target_port, int64_t bytes_per_second = 0);
  // Closes all connections.
  ~TcpProxy();

  // "127.0.0.1:port", where it listens.
  std::string address() const;
  // From now on no byte arrives, but no connection ends either: a cable that was pulled out.
  void Cut() { SetCut(true); }
  void Heal() { SetCut(false); }
  // The same for one connection alone, numbered from 0 in the order in which they were made.
  void CutOnly(int connection) COHORT_EXCLUDES(mu_);
  // Later connections are closed as soon as they are made.
  void AcceptAtMost(int connections) COHORT_EXCLUDES(mu_);
  int64_t bytes_forwarded() const { return forwarded_; }

 private:
  struct Direction {
    std::chrono::steady_clock::time_point free_at;  // when the bytes so far are through
  };
  struct Link;

  void SetCut(bool cut);
  void AcceptLoop();
  // Of a new connection; -1 where it is one too many.
  int Number() COHORT_EXCLUDES(mu_);
  void Forward(const std::shared_ptr<Link>& link, int from, int to, int direction);
  // Waits until `bytes` may pass; false when the proxy ends.
  bool Pass(const Link& link, int direction, size_t bytes) COHORT_EXCLUDES(mu_);

  const int target_port_;
  const int64_t bytes_per_second_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int64_t> forwarded_{0};
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
