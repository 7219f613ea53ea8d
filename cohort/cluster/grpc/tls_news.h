// TlsNews: what gRPC's threads tell the thread that accepts sockets.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/tls/peer_check.h"
#include "cohort/core/mutex.h"

namespace cohort {

// The verifiers of gRPC share it with the acceptor, and may live a little longer. Thread-safe.
class TlsNews {
 public:
  struct Verdict {
    int slot;  // of the credentials that the connection was given
    CertificateVerdict verdict;
  };

  // `wake` is called after each of the next two calls, until Close. It must not block.
  explicit TlsNews(std::function<void()> wake) : wake_(std::move(wake)) {}
  void Judge(int slot, const CertificateVerdict& verdict) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    verdicts_.push_back({slot, verdict});
    if (wake_) wake_();
  }
  // The peer at this address has also proved that it has the token.
  void Prove(const std::string& address) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    proved_.push_back(address);
    if (wake_) wake_();
  }
  void Close() COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    wake_ = nullptr;
  }

  std::vector<Verdict> TakeVerdicts() COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return std::exchange(verdicts_, {});
  }
  std::vector<std::string> TakeProved() COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return std::exchange(proved_, {});
  }

 private:
  Mutex mu_;
  std::function<void()> wake_ COHORT_GUARDED_BY(mu_);
  std::vector<Verdict> verdicts_ COHORT_GUARDED_BY(mu_);
  std::vector<std::string> proved_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
