// CountedDriver: the driver of the machine's cards, with counts of what it is asked. For tests that run on a card.
#pragma once

#include <map>
#include <set>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/fake/driver_counts.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// Gives each call to the other driver, and counts it in `counts`. Both must live as long. Thread-safe.
class CountedDriver final : public Driver {
 public:
  CountedDriver(Driver& driver, DriverCounts& counts) : driver_(driver), counts_(counts) {}

  int CardCount() override { return driver_.CardCount(); }
  CardInfo Card(int card) override { return driver_.Card(card); }
  size_t FreeBytes(int card) override { return driver_.FreeBytes(card); }
  void* Allocate(int card, size_t bytes) override { return driver_.Allocate(card, bytes); }
  void Free(int card, void* data) override { driver_.Free(card, data); }
  void* AllocatePinned(int card, size_t bytes) override;
  void FreePinned(int card, void* data) override;
  StreamHandle MakeStream(int card, const std::string& name) override { return driver_.MakeStream(card, name); }
  void Destroy(int card, StreamHandle stream) override;
  EventHandle MakeEvent(int card, EventUse use) override { return driver_.MakeEvent(card, use); }
  void Destroy(int card, EventHandle event) override { driver_.Destroy(card, event); }
  void Record(EventHandle event, StreamHandle stream) override { driver_.Record(event, stream); }
  void Wait(StreamHandle stream, EventHandle event) override { driver_.Wait(stream, event); }
  Status IsReached(EventHandle event, bool* reached) override { return driver_.IsReached(event, reached); }
  Status Synchronize(EventHandle event) override { return driver_.Synchronize(event); }
  double MicrosecondsBetween(EventHandle begin, EventHandle end) override {
    return driver_.MicrosecondsBetween(begin, end);
  }
  void EnablePeerAccess(int card, int peer) override { driver_.EnablePeerAccess(card, peer); }
  void CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) override;
  void FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) override {
    driver_.FillAsync(to, value, bytes, stream);
  }
  void Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t bytes,
              StreamHandle stream) override;
  bool LoadsKernels() const override { return driver_.LoadsKernels(); }
  const void* LoadKernel(int card, const std::string& code, const char* name) override {
    return driver_.LoadKernel(card, code, name);
  }
  void BeginCapture(StreamHandle stream) override { driver_.BeginCapture(stream); }
  GraphHandle EndCapture(StreamHandle stream) override { return driver_.EndCapture(stream); }
  bool DropCapture(StreamHandle stream) override { return driver_.DropCapture(stream); }
  void LaunchGraph(GraphHandle graph, StreamHandle stream) override;
  void Destroy(GraphHandle graph) override { driver_.Destroy(graph); }

 private:
  Driver& driver_;
  DriverCounts& counts_;
  Mutex mu_;
  std::set<void*> with_kernels_ COHORT_GUARDED_BY(mu_);          // streams
  std::map<const void*, size_t> pinned_ COHORT_GUARDED_BY(mu_);  // sizes by address
};

}  // namespace cohort::cuda
