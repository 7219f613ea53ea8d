// Prefetch: a thread that runs the input before the consumer asks for its elements. The thread fills a queue of entries
// (Loop); Next takes them. Save halts the thread between two entries. No wait has a deadline, because each of them ends
// with the current call of the input. That call has no deadline either: it ends when files, functions and sources of
// the program return. A comment at each wait says what ends it.
#include <atomic>
#include <deque>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/ahead.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

constexpr int64_t kChosenBuffer = 2;
constexpr size_t kLargeBuffer = 32;

// A result of the input that the thread has prepared.
struct Entry {
  std::string position;  // of the input before this element, if positions are small
  Element element;
  Status status;
  bool end = false;
};

class PrefetchIterator : public StageIterator {
 public:
  PrefetchIterator(StagePtr input, size_t buffer_size) : input_(std::move(input)), buffer_size_(buffer_size) {}
  ~PrefetchIterator() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
    }
    room_.NotifyAll();
    if (thread_.joinable()) thread_.join();
  }
  bool Next(Element* out) override {
    Entry entry;
    bool room = false;
    AwaitShortly([this] { return has_entry_.load(); });
    {
      MutexLock lock(mu_);
      if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
      // Ends when the thread has made the next entry: an element, the error of the input, or the end. The thread never
      // leaves its loop without one of these while the iterator lives.
      while (entries_.empty()) ready_.Wait(mu_);
      if (entries_.front().end) return false;  // and stays
      entry = std::move(entries_.front());
      entries_.pop_front();
      has_entry_ = !entries_.empty();
      room = HasRoom();
    }
    if (room) room_.NotifyAll();
    entry.status.ThrowIfError();
    *out = std::move(entry.element);
    return true;
  }
  bool PeekReady(Element* out) override {
    MutexLock lock(mu_);
    if (entries_.empty() || entries_.front().end || !entries_.front().status.ok()) return false;
    *out = entries_.front().element;
    return true;
  }
  void Save(WireWriter* out) override {
    MutexLock lock(mu_);
    const Halt halt(*this);
    // Ends when the input's call that is under way returns or throws; `halts_` keeps the thread from beginning another.
    while (producing_) idle_.Wait(mu_);
    if (small_) {
      out->String(entries_.empty() ? SavedPosition(*input_) : entries_.front().position);
    } else {
      out->Varint(entries_.size());
      for (const Entry& entry : entries_) {
        out->Varint(entry.end ? 1 : 0);
        WriteOutcome(entry.status, entry.element, out);
      }
      input_->Save(out);
    }
  }
  void Restore(WireReader* in) override {
    if (small_) {
      WireReader position(in->View());
      input_->Restore(&position);
      return;
    }
    MutexLock lock(mu_);
    for (uint64_t left = in->Varint(); left > 0; --left) {
      Entry entry;
      entry.end = in->Varint(1) != 0;
      ReadOutcome(in, &entry.status, &entry.element);
      entries_.push_back(std::move(entry));
    }
    has_entry_ = !entries_.empty();
    input_->Restore(in);
  }
  bool HasSmallPosition() const override { return small_; }

 private:
  // Keeps the thread from beginning a call of the input while it exists, also if Save throws. Requires: the thread that
  // makes and destroys it holds mu_.
  class Halt {
   public:
    explicit Halt(PrefetchIterator& iterator) COHORT_REQUIRES(iterator.mu_) : iterator_(iterator) {
      ++iterator_.halts_;
    }
    ~Halt() COHORT_NO_THREAD_SAFETY_ANALYSIS {  // the holder of the lock is the function around it
      --iterator_.halts_;
      iterator_.room_.NotifyAll();
    }
    Halt(const Halt&) = delete;
    Halt& operator=(const Halt&) = delete;

   private:
    PrefetchIterator& iterator_;
  };

  void Loop() {
    SetThreadName("prefetch");
    MutexLock lock(mu_);
    bool ended = !entries_.empty() && entries_.back().end;
    while (!ended && !stopping_) {
      full_ = entries_.size() >= buffer_size_ || (full_ && !HasRoom());
      if (full_ || halts_ > 0) {
        // Ends when the consumer takes an entry, when Save has finished, or when the iterator is destroyed.
        room_.Wait(mu_);
        continue;
      }
      producing_ = true;
      mu_.Unlock();
      Entry entry = Produce();
      mu_.Lock();
      producing_ = false;
      ended = entry.end;
      entries_.push_back(std::move(entry));
      has_entry_ = true;
      ready_.NotifyAll();
      idle_.NotifyAll();
    }
  }
  // Returns whether the thread goes on after the buffer was full: there is room for one entry, or, if the buffer is
  // large, for half of it, so that the thread is not woken for each entry that is taken.
  bool HasRoom() const COHORT_REQUIRES(mu_) {
    const size_t least = buffer_size_ < kLargeBuffer ? 1 : buffer_size_ / 2;
    return entries_.size() + least <= buffer_size_;
  }
  Entry Produce() {
    Entry entry;
    try {
      if (small_) entry.position = SavedPosition(*input_);
      entry.end = !input_->Next(&entry.element);
    } catch (...) {
      entry.status = Status::FromCurrentException();
    }
    return entry;
  }

  const StagePtr input_;  // used by the thread while producing_, otherwise by the holder of mu_
  const size_t buffer_size_;
  const bool small_ = input_->HasSmallPosition();
  std::thread thread_;  // from the first Next on
  Mutex mu_;
  CondVar ready_, room_, idle_;
  std::deque<Entry> entries_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> has_entry_{false};  // entries_ is not empty; written under the lock
  bool full_ COHORT_GUARDED_BY(mu_) = false;
  bool producing_ COHORT_GUARDED_BY(mu_) = false;
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  int halts_ COHORT_GUARDED_BY(mu_) = 0;
};

class PrefetchNode : public DatasetNode {
 public:
  PrefetchNode(NodePtr input, int64_t buffer_size) : DatasetNode({input}, input->spec()), buffer_size_(buffer_size) {}
  std::string kind() const override { return "Prefetch"; }
  std::string Parameters() const override { return StrCat(buffer_size_); }
  int64_t Cardinality() const override { return input()->Cardinality(); }
  void Write(DescriptionWriter* out) const override { out->Int(buffer_size_); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakePrefetch(inputs.at(0), buffer_size_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    StagePtr iterator = input()->MakeIterator(context);
    if (buffer_size_ == 0) return iterator;
    const int64_t size = buffer_size_ < 0 ? kChosenBuffer : buffer_size_;
    return std::make_unique<PrefetchIterator>(std::move(iterator), static_cast<size_t>(size));
  }

 private:
  const int64_t buffer_size_;
};

}  // namespace

NodePtr MakePrefetch(NodePtr input, int64_t buffer_size) {
  CheckParameter(buffer_size >= -1, "a buffer of Prefetch of at least 0, or -1 for one chosen by us", buffer_size);
  return std::make_shared<PrefetchNode>(std::move(input), buffer_size);
}

}  // namespace cohort::data
