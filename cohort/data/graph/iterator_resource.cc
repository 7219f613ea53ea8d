#include "cohort/data/graph/iterator_resource.h"

#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort::data {

void IteratorResource::Initialize(SerializedDataset dataset, FileCheck check, CancellationManager* cancellation,
                                  Done done) {
  std::shared_ptr<DatasetRun> fresh;
  std::vector<std::shared_ptr<DatasetRun>> ended;  // destroyed without the lock
  {
    MutexLock lock(mu_);
    dataset_ = dataset;
    check_ = check;
    fresh = std::make_shared<DatasetRun>(name_, std::move(dataset), spec_, restored_, std::move(check));
    if (run_ != nullptr) {
      run_->Retire();
      retired_.push_back(std::move(run_));
    }
    run_ = fresh;
    std::erase_if(retired_, [&](const std::shared_ptr<DatasetRun>& run) {
      if (!run->ended()) return false;
      ended.push_back(run);
      return true;
    });
  }
  fresh->WaitUntilOpen(cancellation, std::move(done));
}

void IteratorResource::Restart(CancellationManager* cancellation, const Done& done) {
  if (Run(done) == nullptr) return;
  SerializedDataset dataset;
  FileCheck check;
  {
    MutexLock lock(mu_);
    dataset = dataset_;
    check = check_;
  }
  Initialize(std::move(dataset), std::move(check), cancellation, done);
}

void IteratorResource::GetNext(CancellationManager* cancellation, const Done& done) {
  {
    MutexLock lock(mu_);
    restored_.clear();
  }
  if (const std::shared_ptr<DatasetRun> run = Run(done)) run->Next(cancellation, done);
}

void IteratorResource::GetAt(int64_t index, CancellationManager* cancellation, const Done& done) {
  {
    MutexLock lock(mu_);
    restored_.clear();
  }
  if (const std::shared_ptr<DatasetRun> run = Run(done)) run->At(index, cancellation, done);
}

void IteratorResource::Save(CancellationManager* cancellation, const Done& done) {
  if (const std::shared_ptr<DatasetRun> run = Run(done)) run->Save(cancellation, done);
}

void IteratorResource::Restore(const std::string& position, CancellationManager* cancellation, const Done& done) {
  std::shared_ptr<DatasetRun> run;
  {
    MutexLock lock(mu_);
    restored_ = position;
    run = run_;
  }
  if (run == nullptr) return done({});
  run->Restore(position, cancellation, done);
}

std::shared_ptr<DatasetRun> IteratorResource::Run(const Done& done) const {
  {
    MutexLock lock(mu_);
    if (run_ != nullptr) return run_;
  }
  done({Status(Code::kFailedPrecondition,
               StrCat("[iterator] expected an iterator '", name_,
                      "' that is initialized; GetNext() failed because the iterator has not been initialized. Run its "
                      "initializer, or the local init op, before the step")),
        false,
        {},
        ""});
  return nullptr;
}

std::shared_ptr<IteratorResource> SessionIterators::Find(
    const StepOrigin* session, const std::string& name,
    const std::function<std::shared_ptr<IteratorResource>()>& make) {
  Owner owner;
  if (session != nullptr) owner = {session->client.task, session->client.incarnation, session->session};
  MutexLock lock(mu_);
  std::weak_ptr<IteratorResource>& known = iterators_[{owner, name}];
  std::shared_ptr<IteratorResource> found = known.lock();
  if (found == nullptr) known = found = make();
  std::erase_if(iterators_, [](const auto& entry) { return entry.second.expired(); });
  return found;
}

}  // namespace cohort::data
