// ChiefRecordResource: which session leads a training, and how its program describes the training.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/resource.h"
#include "cohort/runtime/data_flow/pending_kernel.h"

namespace cohort {

// One session at a time holds it, until the session ends. A kernel that has to wait is kept in a list, and no thread is
// blocked. Its wait ends with an error if its step is cancelled or if the container of the record is cleared. The
// task's ResourceManager owns the record. Thread-safe. Hold ends the kernel now or later, on any thread; it may also
// continue other steps on the calling thread. It must be called on an object that a shared_ptr owns.
class ChiefRecordResource final : public Resource, public std::enable_shared_from_this<ChiefRecordResource> {
 public:
  // What the holder has written.
  struct Text {
    std::string holder;       // the name of its task
    std::string description;  // of the training
  };

  explicit ChiefRecordResource(std::string name) : name_(std::move(name)) {}

  // Waits until no other session holds the record. Then the kernel's session holds it, and `text` is written.
  void Hold(PendingKernel kernel, Text text) COHORT_EXCLUDES(mu_);
  // Returns what is written. The description stays after the holder's session has ended; `holder` is then "".
  Text Read() COHORT_EXCLUDES(mu_);

  std::string Describe() const override { return "chief record '" + name_ + "'"; }
  void OnRemoved(const std::string& container) override COHORT_EXCLUDES(mu_);
  void OnSessionEnded(uint64_t session) override COHORT_EXCLUDES(mu_);

 private:
  struct Waiting {
    uint64_t id;
    PendingKernel kernel;
    Text text;
  };
  // A kernel that has left the list and is to be ended without the lock.
  struct Ended {
    PendingKernel kernel;
    Status status;
  };

  // Gives the record to the kernels that wait first, as far as possible.
  void Serve(std::vector<Ended>* ended) COHORT_REQUIRES(mu_);
  void Cancel(uint64_t id, const Status& why) COHORT_EXCLUDES(mu_);
  void EndAll(std::vector<Ended> ended) COHORT_EXCLUDES(mu_);

  const std::string name_;
  Mutex mu_;
  Status removed_ COHORT_GUARDED_BY(mu_);       // why the record cannot be used any more, or OK
  uint64_t holder_ COHORT_GUARDED_BY(mu_) = 0;  // the session that holds the record; 0: none
  Text text_ COHORT_GUARDED_BY(mu_);
  std::deque<Waiting> waiting_ COHORT_GUARDED_BY(mu_);
  uint64_t next_id_ COHORT_GUARDED_BY(mu_) = 1;
};

}  // namespace cohort
