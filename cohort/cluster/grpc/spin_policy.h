// SpinPolicy: decides whether a thread that waits for the network spins for a while before it sleeps. To wake a
// sleeping thread takes 25-50 us, and the messages of a small step often come sooner. But a thread that spins takes
// time from other threads.
#pragma once

#include <algorithm>

namespace cohort {

// For one thread. Every wait spins as long as spinning succeeds. Each failure makes spinning rarer.
class SpinPolicy {
 public:
  // Returns whether this wait should spin. If so, the caller then calls Hit, Miss or Crowded.
  bool ShouldSpin() {
    if (skipped_ < skip_) {
      ++skipped_;
      return false;
    }
    skipped_ = 0;
    return true;
  }
  // The event came while the thread was spinning.
  void Hit() { skip_ = 0; }
  // The event did not come.
  void Miss() { skip_ = std::min(2 * skip_ + 1, kMostSkipped); }
  // Another thread needed the core.
  void Crowded() { skip_ = kMostSkipped; }

  static constexpr int kMostSkipped = 127;

 private:
  int skip_ = 0;     // number of waits without spinning between two waits with spinning
  int skipped_ = 0;  // waits without spinning since the last one with spinning
};

}  // namespace cohort
