// Helpers of stages that run their input ahead of the consumer. They save elements that are read but not yet consumed.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Returns when `is_there()` is true, or after about the time that it takes to wake a thread. A consumer calls it before
// it goes to sleep: elements of a fast input are there before that.
template <typename IsThere>
void AwaitShortly(const IsThere& is_there) {
  constexpr std::chrono::microseconds kWakeUp{10};
  if (is_there()) return;
  const auto end = std::chrono::steady_clock::now() + kWakeUp;
  while (!is_there() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// Returns the iterator's position as bytes.
std::string SavedPosition(StageIterator& iterator);

// Write and read an element, or the error that came in its place.
void WriteOutcome(const Status& status, const Element& element, WireWriter* out);
void ReadOutcome(WireReader* in, Status* status, Element* element);

}  // namespace cohort::data
