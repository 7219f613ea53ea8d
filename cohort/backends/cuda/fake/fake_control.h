// FakeControl: what a test may do to the cards of a FakeDriver, and see of them. For tests only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/fake/driver_counts.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

struct FakeCardState;

// What a FakeDriver has made and was not given back yet.
struct FakeLive {
  int64_t blocks = 0;  // of Allocate
  int64_t pinned = 0;  // of AllocatePinned
  int64_t streams = 0;
  int64_t events = 0;
  int64_t graphs = 0;
  bool operator==(const FakeLive&) const = default;
};
std::ostream& operator<<(std::ostream& out, const FakeLive& live);

// Counts calls of a kind, and says which of them have to fail. Thread-safe.
class FailingCalls {
 public:
  // From now on, the n-th call and those after it fail, `times` in all. n is 0 if none is to fail.
  void Set(int64_t n, int64_t times) {
    MutexLock lock(mu_);
    left_ = n;
    times_ = n > 0 ? times : 0;
  }
  // Counts a call. Returns whether it fails.
  bool Fails() {
    MutexLock lock(mu_);
    ++calls_;
    if (left_ > 0) --left_;
    if (left_ > 0 || times_ == 0) return false;
    --times_;
    return true;
  }
  int64_t calls() const {
    MutexLock lock(mu_);
    return calls_;
  }

 private:
  mutable Mutex mu_;
  int64_t left_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t times_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t calls_ COHORT_GUARDED_BY(mu_) = 0;
};

// Faults and delays of the cards of a FakeDriver, and counts of what the driver was asked. The driver owns it.
// Thread-safe.
class FakeControl : public DriverCounts {
 public:
  explicit FakeControl(int cards);
  ~FakeControl();
  // The n-th piece of work that runs on the card from now on fails, as a kernel does that uses a wrong address. 1: the
  // next.
  void FailWork(int card, int64_t n);
  // The n-th call of Allocate (of all cards) from now on, and the calls after it, `times` in all, return null. 1: the
  // next. The allocator asks up to twelve times before it gives up.
  void FailAllocation(int64_t n, int64_t times = 1) { allocations_.Set(n, times); }
  // The same for all calls that take memory of a card or of the host: Allocate and AllocatePinned return null, and the
  // making of contexts, streams, events and graphs, and the loading of kernels, throw ResourceExhaustedError.
  void FailTaking(int64_t n, int64_t times = 1) { takings_.Set(n, times); }
  // Returns how many such calls were made since the start.
  int64_t takings() const { return takings_.calls(); }
  // The n-th call of AllocatePinned from now on returns null. 1: the next.
  void FailPinnedAllocation(int64_t n) { pinned_left_ = n; }
  // Makes all calls of AllocatePinned return null until it is called with false.
  void FailAllPinnedAllocations(bool fail) { no_pinned_ = fail; }
  // The n-th piece of work that is captured (on any stream) from now on is refused, and makes its capture invalid. 1:
  // the next.
  void FailCapture(int64_t n) { captures_left_ = n; }
  // Makes calls fail from now on, until it is called with kOther: kOutOfMemory and kNotAvailable those that need a
  // context of a card that has none, kNoCode launches.
  void SetFault(int card, CardFault fault);
  // Makes the streams of a card stand still until Release is called.
  void Hold(int card);
  // Does so only when the next piece of work is a graph. Other streams go on.
  void HoldGraphs(int card);
  void Release(int card);
  // Returns how many bytes copies from the host have had that have run.
  int64_t bytes_arrived() const { return bytes_arrived_; }
  // Returns how many bytes Allocate has given and Free has not taken back.
  size_t bytes_allocated(int card) const;
  // Returns whether the card has a context, which the first call makes that needs one.
  bool has_context(int card) const;
  // Returns how many graphs were made since the start.
  int64_t graphs_made() const { return graphs_made_; }
  // Returns how many copies between cards went through host memory, because the cards did not reach each other's.
  int64_t detours() const { return detours_; }
  // Returns what exists now. All of it is 0 when nobody uses the driver.
  FakeLive live() const;

 private:
  friend class FakeDriver;
  FakeCardState& State(int card) const;
  // Returns the card in whose memory all of the bytes lie, or -1.
  int CardOf(const void* data, size_t bytes) const;
  // Says that the two cards reach each other's memory.
  void Join(int card, int peer);
  // Counts a copy on devices if it takes a detour.
  void CountDetour(const void* to, const void* from, size_t bytes);

  std::vector<std::unique_ptr<FakeCardState>> cards_;
  FailingCalls allocations_;
  FailingCalls takings_;
  std::atomic<int64_t> bytes_arrived_{0};
  std::atomic<int64_t> events_{0};
  std::atomic<int64_t> graphs_{0};
  std::atomic<int64_t> graphs_made_{0};
  std::atomic<int64_t> detours_{0};
  Mutex joined_mu_;
  std::set<std::pair<int, int>> joined_ COHORT_GUARDED_BY(joined_mu_);  // sorted
  std::atomic<int64_t> pinned_{0};
  std::atomic<int64_t> pinned_left_{0};
  std::atomic<bool> no_pinned_{false};
  std::atomic<int64_t> captures_left_{0};
};

}  // namespace cohort::cuda
