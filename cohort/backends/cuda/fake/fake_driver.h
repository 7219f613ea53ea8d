// FakeDriver: a Driver that needs no card. Its memory is host memory, its streams are threads, and its launches run the
// host version of the kernels. It is stricter than a card: what a program must not rely on goes wrong here. For tests
// only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/fake/fake_control.h"
#include "cohort/backends/cuda/fake/fake_memory.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

struct FakeDriverOptions {
  int cards = 1;
  size_t memory_bytes = size_t{2} << 30;  // of each card
  std::map<int, std::string> problems;    // CardInfo::problem of some cards
  bool has_peer_access = true;            // whether there is a way between two cards
  // Before a piece of work, a stream waits with this probability for a time from 0 to longest_delay. All is drawn from
  // `seed`.
  uint64_t seed = 1;
  double delay_probability = 0.02;
  std::chrono::microseconds longest_delay{300};
};

// Lets time pass on the clock of the stream whose work calls it, for timed events. No real time passes.
void SpendFakeTime(double microseconds);

// A test owns it, or lets it live as long as the process. All streams must be destroyed before it. Thread-safe.
class FakeDriver final : public Driver {
 public:
  explicit FakeDriver(const FakeDriverOptions& options = {});
  ~FakeDriver() override;

  int CardCount() override;
  CardInfo Card(int card) override;
  size_t FreeBytes(int card) override;
  void* Allocate(int card, size_t bytes) override;
  // Waits until all streams of the card have run their work, as cudaFree does.
  void Free(int card, void* data) override;
  void* AllocatePinned(int card, size_t bytes) override;
  void FreePinned(int card, void* data) override;
  StreamHandle MakeStream(int card, const std::string& name) override;
  // Waits until the stream has run its work.
  void Destroy(int card, StreamHandle stream) override;
  EventHandle MakeEvent(int card, EventUse use) override;
  void Destroy(int card, EventHandle event) override;
  void Record(EventHandle event, StreamHandle stream) override;
  void Wait(StreamHandle stream, EventHandle event) override;
  Status IsReached(EventHandle event, bool* reached) override;
  Status Synchronize(EventHandle event) override;
  // Throws InternalError if one of the events is not reached, or has no time.
  double MicrosecondsBetween(EventHandle begin, EventHandle end) override;
  void EnablePeerAccess(int card, int peer) override;
  void CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) override;
  void FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) override;
  void Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t bytes,
              StreamHandle stream) override;
  // `code` is the path of a shared library, which stays open as long as the process. Returns its function `name`, which
  // is KernelCode::host. LoadsKernels is false, because nobody but the compiler of tests makes such libraries.
  const void* LoadKernel(int card, const std::string& code, const char* name) override;
  void BeginCapture(StreamHandle stream) override;
  GraphHandle EndCapture(StreamHandle stream) override;
  bool DropCapture(StreamHandle stream) override;
  void LaunchGraph(GraphHandle graph, StreamHandle stream) override;
  void Destroy(GraphHandle graph) override;

  // What a test may do to the cards, and see of them.
  FakeControl& control() { return control_; }

 private:
  bool PoisonsFreedMemory() const override { return true; }
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
  // Counts a call that takes memory. Throws ResourceExhaustedError if FailTaking wants it to fail.
  void Take(int card, const char* call);
  // Throws KernelNotLoaded if the stream is captured and the card has not loaded the kernel. Otherwise the card has it
  // from now on.
  void NeedLoaded(const KernelCode& code, Queue& queue);
  void Load(const KernelCode& code, int card);
  void CheckHasCode(const KernelCode& code, int card) const;
  // If the stream is captured and the work is the one that FailCapture wants to fail: does what RefuseInCapture does.
  void RefuseIfWanted(Queue& queue);
  // Whether all of these bytes are memory of one card, or are pinned.
  bool IsOnCard(const void* data, size_t bytes) const { return control_.CardOf(data, bytes) >= 0; }
  bool IsPinned(const void* data, size_t bytes) const;
  // Throws InternalError if the addresses of a copy are not where its direction says.
  void CheckSides(const void* to, const void* from, size_t bytes, Copy direction, bool capturing) const;
  // Throws FailedPreconditionError, and makes the capture invalid, if the calling thread captures a stream.
  void RefuseInCapture(const char* call);

  const FakeDriverOptions options_;
  FakeControl control_;
  std::atomic<uint64_t> next_seed_;
  mutable Mutex mu_;
  std::map<void*, size_t> pinned_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cuda
