// RunPosition: where a run is in its plan, for threads that look at it from outside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cohort/core/process/stacks.h"

namespace cohort {

// The place of a run in its plan. The StepRun owns it. Only the thread that runs the step calls the functions that
// change it; Read is for all threads. A change costs one store, so a step pays one store for each kernel.
//
// The place is one number: a multiple of the number of places in the plan, which is new for each step, plus the index
// of the node. So a number never comes twice, and a reader that finds the same number again knows that nothing has
// happened.
class RunPosition {
 public:
  explicit RunPosition(size_t nodes) : nodes_(nodes), span_(nodes + 2), number_(nodes + 1) {}

  // A step begins. It runs no node yet.
  void Begin(int64_t step) {
    base_ += span_;
    step_.store(step, std::memory_order_release);
    number_.store(base_ + nodes_, std::memory_order_release);
  }
  // The calling thread runs the step from now on.
  void TakeOver() { thread_.store(ThisThread(), std::memory_order_relaxed); }
  // The node with this index in the plan begins.
  void Enter(size_t node) { number_.store(base_ + node, std::memory_order_relaxed); }
  // The step runs no node now: it waits, or it moves to another thread.
  void Leave() { number_.store(base_ + nodes_, std::memory_order_relaxed); }
  // The step has ended.
  void End() { number_.store(base_ + nodes_ + 1, std::memory_order_release); }

  struct Place {
    int64_t step = 0;
    uint64_t number = 0;         // see above
    std::optional<size_t> node;  // the node that runs, if one does
    int thread = 0;              // the thread that runs it
  };
  // Returns the place, or nullopt if there is no step, or if it changes just now.
  std::optional<Place> Read() const {
    Place place;
    place.number = number_.load(std::memory_order_acquire);
    place.step = step_.load(std::memory_order_acquire);
    place.thread = thread_.load(std::memory_order_relaxed);
    const uint64_t again = number_.load(std::memory_order_acquire);
    if (again / span_ != place.number / span_ || place.number % span_ > nodes_) return std::nullopt;
    if (place.number % span_ < nodes_) place.node = static_cast<size_t>(place.number % span_);
    return place;
  }

 private:
  const uint64_t nodes_;
  const uint64_t span_;
  uint64_t base_ = 0;
  std::atomic<uint64_t> number_;
  std::atomic<int64_t> step_{0};
  std::atomic<int> thread_{0};
};

}  // namespace cohort
