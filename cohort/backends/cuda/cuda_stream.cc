// CudaStream. StreamState knows which events have been reached, as a number, and holds the callbacks that wait, in the
// order of their events. A thread of its own (the watcher), which starts with the first callback that waits, sleeps in
// the driver until the next event is reached. Then it calls the callbacks (Drain). A thread in Synchronize first asks
// the driver a few times, because most waits are short, and then sleeps until the watcher has come to its event.
#include "cohort/backends/cuda/cuda_stream.h"

#include <deque>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::cuda {
namespace {

// How long Synchronize asks the driver before it sleeps. A sleep costs about as much.
constexpr std::chrono::microseconds kAskingTime{40};
constexpr size_t kMostSpareEvents = 256;

}  // namespace

class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  StreamState(Driver& driver, int card, std::string name) : driver_(driver), card_(card), name_(std::move(name)) {}
  ~StreamState() {
    for (const EventHandle event : spare_) Destroy(event);
    if (reserve_.native != nullptr) Destroy(reserve_);
  }

  // Makes the event that Record uses if there is no memory for another. Call it once, before Record.
  void MakeReserve() {
    MutexLock lock(record_mu_);
    reserve_ = driver_.MakeEvent(card_, EventUse::kOrder);
  }

  // Calls `before`, if it is not empty, and records a new event. What it returns is the first callback of the event.
  std::shared_ptr<CudaEvent> Record(StreamHandle stream, const CudaStream::BeforeRecord& before) {
    // Numbers and records have one order, and no event of another thread comes between `before` and its event.
    MutexLock lock(record_mu_);
    StreamEvent::Callback first;
    try {
      if (before) first = before();
    } catch (...) {
      Fail(Status::FromCurrentException());
    }
    EventHandle handle;
    const int64_t number = ++last_number_;
    try {
      UseCards();
      handle = TakeEvent();
      if (handle.native != nullptr) {
        driver_.Record(handle, stream);
      } else {
        RecordReserve(stream, number);
      }
    } catch (...) {
      Fail(Status::FromCurrentException());
    }
    auto event = std::make_shared<CudaEvent>(shared_from_this(), handle, number);
    if (first) Push({number, event, std::move(first)});
    return event;
  }

  bool Reached(EventHandle event, int64_t number) {
    return reached_.load(std::memory_order_acquire) >= number || failed_.load(std::memory_order_acquire) ||
           Ask(event, number);
  }

  Status Synchronize(const std::shared_ptr<const CudaEvent>& event, int64_t number,
                     std::chrono::steady_clock::time_point deadline) {
    const auto asked_until = std::chrono::steady_clock::now() + kAskingTime;
    while (!Reached(event->handle(), number) && std::chrono::steady_clock::now() < asked_until) {
      std::this_thread::yield();
    }
    MutexLock lock(mu_);
    if (!Ended(number)) Insert({number, event, [](const Status&) {}});
    for (;;) {
      Drain();
      if (Ended(number) && !calling_ && (waiting_.empty() || waiting_.front().number > number)) return failure_;
      if (!changed_.WaitUntil(mu_, deadline) && !Ended(number)) {
        return Status(Code::kDeadlineExceeded,
                      StrCat("[cuda] expected the work on stream '", name_,
                             "' to end; the deadline came first: a kernel stands still, or there is too much work"));
      }
    }
  }

  void OnReady(std::shared_ptr<const CudaEvent> event, int64_t number, StreamEvent::Callback callback) {
    Push({number, std::move(event), std::move(callback)});
  }

  // Makes the callbacks of all events get the error.
  void Fail(const Status& status) {
    MutexLock lock(mu_);
    NoteFailure(status);
    wake_.NotifyAll();
  }

  // Ends the watcher, which first calls all callbacks.
  void Stop() {
    std::thread watcher;
    {
      MutexLock lock(mu_);
      stopping_ = true;
      wake_.NotifyAll();
      watcher.swap(watcher_);
    }
    if (!watcher.joinable()) return;
    IsForkedFromUser() ? watcher.detach() : watcher.join();  // a forked child has no copy of the thread
  }

  // Calls all callbacks with the error, and lets the watcher alone, which may wait for ever. It has its share of this
  // object.
  void Abandon(const Status& why) {
    MutexLock lock(mu_);
    NoteFailure(why);
    stopping_ = true;
    Drain();
    while (calling_) changed_.Wait(mu_);  // ends: another thread calls the callbacks, and notifies
    wake_.NotifyAll();
    if (watcher_.joinable()) watcher_.detach();
  }

  void GiveEvent(EventHandle event) {
    if (event.native == nullptr) return;
    {
      MutexLock lock(mu_);
      if (spare_.size() < kMostSpareEvents) return spare_.push_back(event);
    }
    Destroy(event);
  }

 private:
  struct Waiting {
    int64_t number;
    std::shared_ptr<const CudaEvent> event;  // keeps the driver's event
    StreamEvent::Callback callback;
  };

  static Status ErrorOfChild() {
    try {
      UseCards();
    } catch (...) {
      return Status::FromCurrentException();
    }
    return {};
  }
  // Returns no event if there is no memory for one.
  EventHandle TakeEvent() {
    {
      MutexLock lock(mu_);
      if (!spare_.empty()) {
        const EventHandle event = spare_.back();
        spare_.pop_back();
        return event;
      }
    }
    try {
      return driver_.MakeEvent(card_, EventUse::kOrder);
    } catch (const ResourceExhaustedError&) {
      return {};
    }
  }
  // Waits here until the work before it has run, so that the event needs nothing of the driver's.
  void RecordReserve(StreamHandle stream, int64_t number) COHORT_REQUIRES(record_mu_) {
    driver_.Record(reserve_, stream);
    driver_.Synchronize(reserve_).ThrowIfError();
    NoteReached(number);
  }
  void Destroy(EventHandle event) {
    if (IsForkedFromUser()) return;
    try {
      driver_.Destroy(card_, event);
    } catch (const Error&) {
      // The card has failed. The process keeps the event.
    }
  }

  void Push(Waiting waiting) {
    MutexLock lock(mu_);
    Insert(std::move(waiting));
    Drain();
  }
  // Puts a callback at its place in the order of events.
  void Insert(Waiting waiting) COHORT_REQUIRES(mu_) {
    auto at = waiting_.end();
    while (at != waiting_.begin() && std::prev(at)->number > waiting.number) --at;
    const bool comes_later = !Ended(waiting.number);
    waiting_.insert(at, std::move(waiting));
    if (!comes_later) return;
    if (!watcher_.joinable() && !stopping_) watcher_ = std::thread([self = shared_from_this()] { self->Watch(); });
    wake_.NotifyOne();
  }
  bool Ended(int64_t number) const { return failed_ || reached_ >= number; }

  // Asks the driver whether the event is reached, and notes the answer.
  bool Ask(EventHandle event, int64_t number) {
    bool reached = false;
    const Status status = IsForkedFromUser() ? ErrorOfChild() : driver_.IsReached(event, &reached);
    if (!status.ok()) Fail(status);
    if (reached) NoteReached(number);
    return reached || !status.ok();
  }
  void NoteReached(int64_t number) {
    int64_t before = reached_.load(std::memory_order_relaxed);
    while (before < number && !reached_.compare_exchange_weak(before, number, std::memory_order_acq_rel)) {
    }
  }
  void NoteFailure(const Status& status) COHORT_REQUIRES(mu_) {
    if (failure_.ok()) failure_ = status;
    failed_ = true;
  }

  // Calls the callbacks of events that have been reached, or of all if the card has failed. Does nothing if another
  // thread is in this function.
  void Drain() COHORT_REQUIRES(mu_) {
    if (calling_) return;
    calling_ = true;
    while (!waiting_.empty() && Ended(waiting_.front().number)) {
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      const Status status = failure_;
      mu_.Unlock();
      next.callback(status);
      next = {};
      mu_.Lock();
    }
    calling_ = false;
    changed_.NotifyAll();
  }

  void Watch() {
    SetThreadName(name_);
    while (WatchNext()) {
    }
  }
  // Waits for the first event that has a callback, and calls what can be called. Returns false when the stream has
  // ended.
  bool WatchNext() {
    std::shared_ptr<const CudaEvent> event;  // its destructor takes the lock
    int64_t number = 0;
    {
      MutexLock lock(mu_);
      while (waiting_.empty()) {
        if (stopping_) return false;
        wake_.Wait(mu_);  // ends: Stop notifies
      }
      event = waiting_.front().event;
      number = waiting_.front().number;
    }
    Status status;
    if (!Ended(number)) status = driver_.Synchronize(event->handle());
    MutexLock lock(mu_);
    status.ok() ? NoteReached(number) : NoteFailure(status);
    Drain();
    // Another thread calls callbacks.
    while (calling_) changed_.Wait(mu_);  // ends: that thread notifies
    return true;
  }

  Driver& driver_;
  const int card_;
  const std::string name_;
  Mutex record_mu_;
  int64_t last_number_ COHORT_GUARDED_BY(record_mu_) = 0;
  EventHandle reserve_ COHORT_GUARDED_BY(record_mu_);  // for a time without memory
  std::atomic<int64_t> reached_{0};                    // all events up to this number are reached
  std::atomic<bool> failed_{false};
  Mutex mu_;
  CondVar wake_;     // for the watcher
  CondVar changed_;  // for threads that wait until callbacks have been called
  Status failure_ COHORT_GUARDED_BY(mu_);
  std::deque<Waiting> waiting_ COHORT_GUARDED_BY(mu_);
  bool calling_ COHORT_GUARDED_BY(mu_) = false;  // a thread calls callbacks
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  std::vector<EventHandle> spare_ COHORT_GUARDED_BY(mu_);
  std::thread watcher_ COHORT_GUARDED_BY(mu_);
};

CudaEvent::CudaEvent(std::shared_ptr<StreamState> state, EventHandle handle, int64_t number)
    : state_(std::move(state)), handle_(handle), number_(number) {}

CudaEvent::~CudaEvent() { state_->GiveEvent(handle_); }

bool CudaEvent::reached() const { return state_->Reached(handle_, number_); }

Status CudaEvent::Synchronize(std::chrono::steady_clock::time_point deadline) {
  return state_->Synchronize(shared_from_this(), number_, deadline);
}

void CudaEvent::OnReady(Callback callback) { state_->OnReady(shared_from_this(), number_, std::move(callback)); }

CudaStream::CudaStream(Driver& driver, int card, const std::string& name, std::chrono::milliseconds patience)
    : driver_(driver),
      card_(card),
      name_(name),
      patience_(patience),
      state_(std::make_shared<StreamState>(driver, card, name)) {}

bool CudaStream::Finish(std::chrono::steady_clock::time_point deadline) {
  if (abandoned_) return false;
  const Status status = Record()->Synchronize(deadline);
  abandoned_ = status.code() == Code::kDeadlineExceeded;
  if (abandoned_) {
    state_->Abandon(status);
  } else if (!status.ok()) {
    state_->Fail(status);
  }
  return !abandoned_;
}

CudaStream::~CudaStream() {
  if (native_ == nullptr || abandoned_) return;
  if (!Finish(std::chrono::steady_clock::now() + patience_)) {
    LogWarning("cuda", "the work on stream '", name_, "' of card ", card_,
               " does not end; the process keeps the stream, and a thread that waits for it");
    return;
  }
  state_->Stop();
  if (IsForkedFromUser()) return;
  try {
    driver_.Destroy(card_, StreamHandle{native_, card_});
  } catch (const Error&) {
    // The card has failed. The process keeps the stream.
  }
}

StreamHandle CudaStream::handle() const {
  UseCards();
  if (void* native = native_.load(std::memory_order_acquire)) return {native, card_};
  MutexLock lock(make_mu_);
  if (native_ == nullptr) {
    const StreamHandle made = driver_.MakeStream(card_, name_);
    try {
      state_->MakeReserve();
    } catch (...) {
      driver_.Destroy(card_, made);
      throw;
    }
    native_ = made.native;
  }
  return {native_, card_};
}

std::shared_ptr<StreamEvent> CudaStream::Record() {
  void* const native = native_.load(std::memory_order_acquire);
  if (native == nullptr) return std::make_shared<CudaEvent>(state_, EventHandle(), 0);
  return state_->Record({native, card_}, before_record_);
}

void CudaStream::Wait(const std::shared_ptr<StreamEvent>& event) {
  const EventHandle other = static_cast<const CudaEvent&>(*event).handle();
  if (other.native == nullptr) return;  // of a stream without work, or of a device that has failed
  const StreamHandle mine = handle();
  try {
    driver_.Wait(mine, other);
  } catch (...) {
    state_->Fail(Status::FromCurrentException());
  }
}

}  // namespace cohort::cuda
