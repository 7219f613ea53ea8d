#include "cohort/runtime/data_flow/chief_record.h"

#include "cohort/core/str_cat.h"

namespace cohort {

void ChiefRecordResource::Hold(PendingKernel kernel, Text text) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    const uint64_t id = next_id_++;
    waiting_.push_back({id, std::move(kernel), std::move(text)});
    Serve(&ended);
    const auto cancel = [self = shared_from_this(), id](const Status& why) { self->Cancel(id, why); };
    if (auto cancelled = WatchLast<Waiting>(waiting_, id, cancel)) {
      const Status why = cancelled->kernel.WhyCancelled();
      ended.push_back({std::move(cancelled->kernel), why});
    }
  }
  EndAll(std::move(ended));
}

void ChiefRecordResource::Serve(std::vector<Ended>* ended) {
  while (!waiting_.empty()) {
    Waiting& next = waiting_.front();
    if (removed_.ok()) {
      const uint64_t session = next.kernel.session();
      if (holder_ != 0 && holder_ != session) return;
      holder_ = session;
      text_ = std::move(next.text);
    }
    ended->push_back({std::move(next.kernel), removed_});
    waiting_.pop_front();
  }
}

ChiefRecordResource::Text ChiefRecordResource::Read() {
  MutexLock lock(mu_);
  return text_;
}

void ChiefRecordResource::Cancel(uint64_t id, const Status& why) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    auto cancelled = TakeOut(waiting_, id);
    if (!cancelled) return;
    ended.push_back({std::move(cancelled->kernel), why});
  }
  EndAll(std::move(ended));
}

void ChiefRecordResource::OnRemoved(const std::string& container) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    removed_ = Status(Code::kAborted, StrCat("[chief record] ", Describe(), " was removed: the container '", container,
                                             "' was cleared; start a new session"));
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void ChiefRecordResource::OnSessionEnded(uint64_t session) {
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    if (holder_ != session) return;
    holder_ = 0;
    text_.holder.clear();
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void ChiefRecordResource::EndAll(std::vector<Ended> ended) {
  const std::shared_ptr<ChiefRecordResource> alive = shared_from_this();  // a step that goes on may remove the record
  for (Ended& one : ended) one.kernel.End(one.status);
}

}  // namespace cohort
