// IteratorResource: an iterator over a dataset that lives on a task between the steps that use it. The ops IteratorV2,
// MakeIterator and IteratorGetNext work on it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/data/graph/dataset_run.h"
#include "cohort/device/client_id.h"
#include "cohort/device/resource.h"

namespace cohort::data {

// The iterator of one name. It has no dataset until Initialize. The kernels that use it own it together; if it has a
// shared name, so does the ResourceManager of the task. Thread-safe. No method waits: `done` is called when the answer
// is there, or when `cancellation` (which may be null) cancels. See DatasetRun for the order of the answers and for
// what the destructor waits for.
class IteratorResource final : public Resource {
 public:
  using Done = DatasetRun::Done;

  IteratorResource(std::string name, ElementSpec spec) : name_(std::move(name)), spec_(std::move(spec)) {}

  std::string Describe() const override { return "iterator '" + name_ + "'"; }
  const std::string& name() const { return name_; }
  // Returns the dtypes and shapes that every dataset of this iterator must have.
  const ElementSpec& spec() const { return spec_; }

  // Puts the iterator at the start of a dataset, or at the position that Restore was given since the last GetNext.
  // Steps that already wait for an element get one of the dataset before.
  // `check` is that of Deserialize.
  void Initialize(SerializedDataset dataset, FileCheck check, CancellationManager* cancellation, Done done)
      COHORT_EXCLUDES(mu_);
  // The next four fail with FailedPreconditionError if Initialize was never called.
  // As Initialize with the dataset and the check of the last call of Initialize.
  void Restart(CancellationManager* cancellation, const Done& done) COHORT_EXCLUDES(mu_);
  void GetNext(CancellationManager* cancellation, const Done& done) COHORT_EXCLUDES(mu_);
  // Gives the element with this number, from 0 (DatasetRun::At).
  void GetAt(int64_t index, CancellationManager* cancellation, const Done& done) COHORT_EXCLUDES(mu_);
  void Save(CancellationManager* cancellation, const Done& done) COHORT_EXCLUDES(mu_);
  // Goes to a position that Save has returned. Also keeps the position for Initialize until the next GetNext or GetAt:
  // a session that recovers restores first and runs the local initializers after that. Fails with InvalidArgumentError
  // if the present dataset is another pipeline.
  void Restore(const std::string& position, CancellationManager* cancellation, const Done& done) COHORT_EXCLUDES(mu_);

 private:
  // Returns the current run. If there is none, calls `done` with the error and returns null.
  std::shared_ptr<DatasetRun> Run(const Done& done) const COHORT_EXCLUDES(mu_);

  const std::string name_;
  const ElementSpec spec_;
  mutable Mutex mu_;
  std::string restored_ COHORT_GUARDED_BY(mu_);  // since the last GetNext or GetAt; "" if there is none
  std::shared_ptr<DatasetRun> run_ COHORT_GUARDED_BY(mu_);
  SerializedDataset dataset_ COHORT_GUARDED_BY(mu_);  // of run_, which shares its tensors
  FileCheck check_ COHORT_GUARDED_BY(mu_);            // of run_
  // Runs of earlier datasets that may still serve requests.
  std::vector<std::shared_ptr<DatasetRun>> retired_ COHORT_GUARDED_BY(mu_);
};

// The iterators without a shared name on one task. Each belongs to one session: two sessions whose graphs have
// iterators of the same name do not see each other's. The kernels of a session own its iterators, so they end with the
// session. This object only knows them, so that all kernels of the session find the same one. The ResourceManager owns
// it. Thread-safe.
class SessionIterators final : public Resource {
 public:
  std::string Describe() const override { return "the iterators of sessions"; }
  // Returns the iterator `name` of the session, which may be null if a step has none. Calls `make` if there is none.
  std::shared_ptr<IteratorResource> Find(const StepOrigin* session, const std::string& name,
                                         const std::function<std::shared_ptr<IteratorResource>()>& make)
      COHORT_EXCLUDES(mu_);

 private:
  struct Owner {
    std::string task;
    uint64_t incarnation = 0;
    uint64_t session = 0;
    // clang-tidy 14 takes the 0 in a comparison by <=> for a pointer.
    friend auto operator<=>(const Owner&, const Owner&) = default;  // NOLINT(modernize-use-nullptr)
  };
  Mutex mu_;
  std::map<std::pair<Owner, std::string>, std::weak_ptr<IteratorResource>> iterators_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::data
