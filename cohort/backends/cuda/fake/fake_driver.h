// FakeDriver: a Driver that needs no card. Its memory is host memory, its streams are threads, and its launches run the
// host version of the kernels. It is stricter than a card: what a program must not rely on goes wrong here. For tests
// only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/fake/driver_counts.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// The value of every byte of memory that nobody has written: floats are then NaN.
inline constexpr unsigned char kFakePoison = 0xff;

struct FakeDriverOptions {
  int cards = 1;
  size_t memory_bytes = size_t{2} << 30;  // of each card
  std::map<int, std::string> problems;    // CardInfo::problem of some cards
  // Whether CUDA_VISIBLE_DEVICES, as it is at the first call of CardCount, hides cards. Its numbers count, but do not
  // choose: the cards are alike.
  bool heeds_visible_devices = false;
  // Before a piece of work, a stream waits with this probability for a time from 0 to longest_delay. All is drawn from
  // `seed`.
  uint64_t seed = 1;
  double delay_probability = 0.02;
  std::chrono::microseconds longest_delay{300};
};

struct FakeCardState;

// Lets time pass on the clock of the stream whose work calls it, for timed events. No real time passes.
void SpendFakeTime(double microseconds);

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
  void FailAllocation(int64_t n, int64_t times = 1) {
    failing_allocations_ = times;
    allocations_left_ = n;
  }
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
  void Release(int card);
  // Returns how many bytes Allocate has given and Free has not taken back.
  size_t bytes_allocated(int card) const;
  // Returns whether the card has a context, which the first call makes that needs one.
  bool has_context(int card) const;

 private:
  friend class FakeDriver;
  FakeCardState& State(int card) const;

  std::vector<std::unique_ptr<FakeCardState>> cards_;
  std::atomic<int64_t> allocations_left_{0};
  std::atomic<int64_t> failing_allocations_{0};
  std::atomic<int64_t> pinned_left_{0};
  std::atomic<bool> no_pinned_{false};
  std::atomic<int64_t> captures_left_{0};
};

// A test owns it, or lets it live as long as the process. All streams must be destroyed before it. Thread-safe.
class FakeDriver final : public Driver {
 public:
  explicit FakeDriver(const FakeDriverOptions& options = {});
  ~FakeDriver() override;

  int CardCount() override;
  CardInfo Card(int card) override;
  size_t FreeBytes(int card) override;
  bool PoisonsFreedMemory() const override { return true; }
  void* Allocate(int card, size_t bytes) override;
  // Waits until all streams of the card have run their work, as cudaFree does.
  void Free(int card, void* data) override;
  void* AllocatePinned(int card, size_t bytes) override;
  void FreePinned(int card, void* data) override;
  StreamHandle MakeStream(int card, const std::string& name) override;
  // Waits until the stream has run its work.
  void DestroyStream(int card, StreamHandle stream) override;
  EventHandle MakeEvent(int card, EventUse use) override;
  void DestroyEvent(int card, EventHandle event) override;
  void Record(EventHandle event, StreamHandle stream) override;
  void Wait(StreamHandle stream, EventHandle event) override;
  Status IsReached(EventHandle event, bool* reached) override;
  Status Synchronize(EventHandle event) override;
  // Throws InternalError if one of the events is not reached, or has no time.
  double MicrosecondsBetween(EventHandle begin, EventHandle end) override;
  void CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) override;
  void FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) override;
  void Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t bytes,
              StreamHandle stream) override;
  void BeginCapture(StreamHandle stream) override;
  GraphHandle EndCapture(StreamHandle stream) override;
  void LaunchGraph(GraphHandle graph, StreamHandle stream) override;
  void DestroyGraph(GraphHandle graph) override;

  // What a test may do to the cards, and see of them.
  FakeControl& control() { return control_; }

 private:
  using CardState = FakeCardState;
  struct Marker;
  struct Event;
  struct Graph;
  class Queue;
  friend struct FakeCardState;

  CardState& State(int card) const { return control_.State(card); }
  // Throws the card's error if it has failed.
  void CheckCard(int card) const;
  // Does the same, and makes the card's context if there is none. Throws if that is not possible.
  void NeedContext(int card, const char* call);
  void CheckHasCode(const KernelCode& code, int card) const;
  // If the stream is captured and the work is the one that FailCapture wants to fail: does what RefuseInCapture does.
  void RefuseIfWanted(Queue& queue);
  // Throws FailedPreconditionError, and makes the capture invalid, if the calling thread captures a stream.
  void RefuseInCapture(const char* call);

  const FakeDriverOptions options_;
  std::once_flag counted_;
  int visible_cards_ = 0;
  FakeControl control_;
  std::atomic<uint64_t> next_seed_;
  mutable Mutex mu_;
  std::map<void*, size_t> pinned_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cuda
