// DatasetRun: one pass of a graph's iterator over its dataset, on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/data/dataset.h"
#include "cohort/data/serialize.h"
#include "cohort/device/cancellation.h"

namespace cohort::data {

// The answer to a request. `has_element`, `element` and `position` count only if the status is OK.
struct RunAnswer {
  Status status;
  bool has_element = false;  // Next: false at the end of the dataset
  Element element;
  std::string position;  // Save
};

// Runs a dataset on one thread, which serves requests one after another, in the order in which they came. The dataset
// may read files, call functions and wait, because no thread of a device waits with it. IteratorResource owns it.
// Thread-safe.
//
// Each request is answered exactly once: on the run's thread when it was served, or with the cancellation's error on
// the thread that cancels its step. If a request is cancelled while it is served, the element that it would have got
// goes to the next request that asks for the next element, or for this one. The destructor cancels the requests that
// wait and stops the iterator. It waits until the thread has ended: at most as long as one call of a function or one
// read of a file takes. If the destructor runs on the run's own thread, because an answer has released the last owner,
// it does not wait.
class DatasetRun {
 public:
  using Done = std::function<void(RunAnswer)>;

  // Starts the thread. `check` is that of Deserialize. The thread first makes the dataset, checks that its elements fit
  // `spec`, makes its iterator, and goes to `position` if that is not empty. If that fails, all requests fail. But if
  // the position is one of another pipeline, or is damaged, the thread logs a warning and begins at the start.
  DatasetRun(std::string name, SerializedDataset dataset, const ElementSpec& spec, std::string position,
             FileCheck check);
  ~DatasetRun();
  DatasetRun(const DatasetRun&) = delete;

  // Asks for the outcome of making the iterator, for the next element, for the position, or for the iterator to go to
  // `position`. `cancellation` is that of the step that asks; it may be null.
  void WaitUntilOpen(CancellationManager* cancellation, Done done);
  void Next(CancellationManager* cancellation, Done done);
  // Asks for the element with this number, from 0: the run passes over those before it. If it has passed over this one
  // already, and does not keep it, it begins again at the start of the dataset. An element whose stage throws counts as
  // one. A run that has gone to a position does not know the number of its next element, so it begins again, too.
  void At(int64_t index, CancellationManager* cancellation, Done done);
  void Save(CancellationManager* cancellation, Done done);
  void Restore(std::string position, CancellationManager* cancellation, Done done);

  // Makes the run end when it has answered all requests that it has. Does not wait. A later request fails with
  // AbortedError.
  void Retire();
  // Returns whether the thread serves nothing any more, so that the destructor does not wait.
  bool ended() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace cohort::data
