// SpinPolicy: whether a thread that waits for the network should look again and again for a while before it sleeps.
// To be woken costs 25-50 us, a small step's messages come sooner than that; but what a spinning thread burns is lost
// to others.
#pragma once

#include <algorithm>

namespace cohort {

// Of one thread. One wait in so many spins: each one while that pays, ever fewer while it does not.
class SpinPolicy {
 public:
  // Whether this wait spins. One of the three below follows where it does.
  bool ShouldSpin() {
    if (skipped_ < skip_) {
      ++skipped_;
      return false;
    }
    skipped_ = 0;
    return true;
  }
  // What was waited for came meanwhile.
  void Hit() { skip_ = 0; }
  // It did not.
  void Miss() { skip_ = std::min(2 * skip_ + 1, kMostSkipped); }
  // Somebody else wanted the core.
  void Crowded() { skip_ = kMostSkipped; }

  static constexpr int kMostSkipped = 127;

 private:
  int skip_ = 0;     // waits without spinning between two with
  int skipped_ = 0;  // since the last one with
};

}  // namespace cohort
