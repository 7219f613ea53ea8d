// The thread of a DatasetRun and its queue of requests. The thread and the DatasetRun share the State, because the
// thread may outlive the DatasetRun by the rest of one answer. A request is in the queue, or is being served, or is
// answered. The flag Request::answered says which side answers it: the thread, or the cancellation of its step.
#include "cohort/data/graph/dataset_run.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"
#include "cohort/data/stages/ahead.h"

namespace cohort::data {
namespace {

enum class RequestKind { kOpen, kNext, kSave, kRestore };

constexpr int64_t kNextOne = -1;
// Elements that were passed over are kept up to so many bytes together, but one is kept of any size. Two steps that run
// at the same time may ask for their elements in either order.
constexpr size_t kMostPassedBytes = size_t{16} << 20;

struct Request {
  RequestKind kind = RequestKind::kNext;
  int64_t index = kNextOne;  // kNext: the number of the element
  std::string position;      // kRestore
  DatasetRun::Done done;
  CancellationManager* cancellation = nullptr;
  CancellationManager::Token token = CancellationManager::kAlreadyCancelled;
  bool answered = false;  // guarded by the run's lock
};
using RequestPtr = std::shared_ptr<Request>;

}  // namespace

class DatasetRun::State : public std::enable_shared_from_this<State> {
 public:
  State(std::string name, SerializedDataset dataset, ElementSpec spec, std::string position, FileCheck check)
      : name_(std::move(name)),
        serialized_(std::move(dataset)),
        check_(std::move(check)),
        first_position_(std::move(position)),
        spec_(std::move(spec)) {}

  // Puts the request into the queue, or answers it if its step is cancelled or the run has ended.
  void Ask(RequestPtr request) COHORT_EXCLUDES(mu_);
  void Retire() COHORT_EXCLUDES(mu_);
  // Cancels all requests and stops the iterator.
  void Stop() COHORT_EXCLUDES(mu_);
  // The thread.
  void Loop() COHORT_EXCLUDES(mu_);
  bool ended() const COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return ended_;
  }

 private:
  // Answers the request, because its step was cancelled, if nothing has answered it.
  void Cancel(const RequestPtr& request, const Status& why) COHORT_EXCLUDES(mu_);
  // Waits for the next request. Returns null when the run has ended.
  RequestPtr Take() COHORT_EXCLUDES(mu_);
  // Stops the iterator if nothing waits for it any more and nothing can ask again.
  void StopIfUnused() COHORT_REQUIRES(mu_);

  // These run on the thread, without the lock.
  RunAnswer Serve(const Request& request);
  void Open();  // makes the iterator; sets opened_
  void GoToFirstPosition();
  RunAnswer NextElement();
  RunAnswer ElementAt(const Request& request);
  RunAnswer TakeElement();
  // Keeps an element that was passed over.
  void KeepPassed(int64_t index, RunAnswer answer);
  void BeginAgain();
  bool IsAnswered(const Request& request) const COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return request.answered;
  }
  std::string Position();
  void GoTo(const std::string& position);
  Iterator& iterator();

  const std::string name_;
  // Only the thread uses these.
  SerializedDataset serialized_;
  const FileCheck check_;
  const std::string first_position_;
  const ElementSpec spec_;
  std::optional<Dataset> dataset_;
  std::unique_ptr<Iterator> iterator_;
  Status opened_;                    // the outcome of Open
  std::optional<RunAnswer> kept_;    // of a Next that was cancelled while it was served
  std::optional<int64_t> next_ = 0;  // the number of the iterator's next element, if it is known
  struct Passed {
    int64_t index;
    RunAnswer answer;
    size_t bytes;
  };
  std::deque<Passed> passed_;  // the latest is the last
  size_t passed_bytes_ = 0;

  const std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  mutable Mutex mu_;
  CondVar wake_;
  std::deque<RequestPtr> queue_ COHORT_GUARDED_BY(mu_);
  RequestPtr serving_ COHORT_GUARDED_BY(mu_);
  bool retired_ COHORT_GUARDED_BY(mu_) = false;
  bool ended_ COHORT_GUARDED_BY(mu_) = false;
};

void DatasetRun::State::Ask(RequestPtr request) {
  if (request->cancellation != nullptr) {
    request->token = request->cancellation->Register(
        [self = shared_from_this(), request](const Status& why) { self->Cancel(request, why); });
    if (request->token == CancellationManager::kAlreadyCancelled) {
      return request->done({request->cancellation->status(), false, {}, ""});
    }
  }
  {
    MutexLock lock(mu_);
    if (request->answered) return;  // cancelled since
    if (!retired_) {
      queue_.push_back(std::move(request));
      wake_.NotifyOne();
      return;
    }
    request->answered = true;
  }
  if (request->cancellation != nullptr) request->cancellation->Deregister(request->token);
  request->done({Status(Code::kAborted, StrCat("[iterator] '", name_,
                                               "' was initialized again or closed while a step asked for an element; "
                                               "run the initializer before the steps")),
                 false,
                 {},
                 ""});
}

void DatasetRun::State::Cancel(const RequestPtr& request, const Status& why) {
  {
    MutexLock lock(mu_);
    if (request->answered) return;
    request->answered = true;
    std::erase(queue_, request);
    StopIfUnused();
  }
  request->done({why, false, {}, ""});
}

void DatasetRun::State::StopIfUnused() {
  if (retired_ && queue_.empty() && (serving_ == nullptr || serving_->answered)) stop_->store(true);
}

void DatasetRun::State::Retire() {
  MutexLock lock(mu_);
  retired_ = true;
  StopIfUnused();
  wake_.NotifyOne();
}

void DatasetRun::State::Stop() {
  std::deque<RequestPtr> left;
  {
    MutexLock lock(mu_);
    retired_ = true;
    left.swap(queue_);
    for (const RequestPtr& request : left) request->answered = true;
    stop_->store(true);
    wake_.NotifyOne();
  }
  for (const RequestPtr& request : left) {
    if (request->cancellation != nullptr) request->cancellation->Deregister(request->token);
    request->done({Status(Code::kCancelled, StrCat("[iterator] '", name_, "' was closed")), false, {}, ""});
  }
}

RequestPtr DatasetRun::State::Take() {
  MutexLock lock(mu_);
  serving_ = nullptr;
  // Ends when a step asks, or when the run is retired or stopped. The owner's destructor stops it.
  while (queue_.empty() && !retired_) wake_.Wait(mu_);
  if (queue_.empty()) return nullptr;
  serving_ = std::move(queue_.front());
  queue_.pop_front();
  return serving_;
}

void DatasetRun::State::Loop() {
  SetThreadName("iterator");
  Open();
  while (const RequestPtr request = Take()) {
    RunAnswer answer = Serve(*request);
    bool cancelled = false;
    {
      MutexLock lock(mu_);
      cancelled = std::exchange(request->answered, true);
    }
    if (cancelled) {
      const bool at_end = answer.status.ok() && !answer.has_element;  // and stays there
      if (request->kind != RequestKind::kNext || at_end) continue;
      if (request->index == kNextOne) {
        kept_ = std::move(answer);
      } else if (answer.has_element) {
        KeepPassed(request->index, std::move(answer));
      }
      continue;
    }
    if (request->cancellation != nullptr) request->cancellation->Deregister(request->token);
    request->done(std::move(answer));
  }
  stop_->store(true);  // for the threads of the stages, which the iterator's destructor joins
  iterator_.reset();
  MutexLock lock(mu_);
  ended_ = true;
}

RunAnswer DatasetRun::State::Serve(const Request& request) {
  RunAnswer answer;
  try {
    switch (request.kind) {
      case RequestKind::kOpen: opened_.ThrowIfError(); break;
      case RequestKind::kNext: return request.index == kNextOne ? NextElement() : ElementAt(request);
      case RequestKind::kSave: answer.position = Position(); break;
      case RequestKind::kRestore: GoTo(request.position); break;
    }
  } catch (...) {
    answer.status = Status::FromCurrentException();
  }
  return answer;
}

void DatasetRun::State::Open() {
  try {
    const Dataset dataset = Deserialize(std::exchange(serialized_, {}), check_);
    if (!IsCompatible(dataset.element_spec(), spec_)) {
      throw InvalidArgumentError(StrCat("[iterator] expected a dataset of elements ", ToString(spec_),
                                        " for the iterator '", name_, "'; got ", ToString(dataset.element_spec()),
                                        " from ", dataset.ToString()));
    }
    dataset_ = dataset;
    iterator_ = dataset.MakeIterator({0, stop_});
    if (!first_position_.empty()) GoToFirstPosition();
  } catch (...) {
    opened_ = Status::FromCurrentException();
  }
}

void DatasetRun::State::GoToFirstPosition() {
  const auto warn = [this](const Error& error) {
    LogWarning("iterator", "'", name_,
               "' begins at the start of its dataset, because its saved position does not fit: ", error.what());
  };
  try {
    GoTo(first_position_);
  } catch (const InvalidArgumentError& error) {
    warn(error);
  } catch (const DataLossError& error) {
    warn(error);
  }
}

Iterator& DatasetRun::State::iterator() {
  if (opened_.ok()) return *iterator_;
  throw FailedPreconditionError(StrCat("[iterator] expected an iterator '", name_,
                                       "' that is initialized; its initializer has failed: ", opened_.message()));
}

RunAnswer DatasetRun::State::NextElement() {
  if (kept_) return *std::exchange(kept_, std::nullopt);
  return TakeElement();
}

RunAnswer DatasetRun::State::TakeElement() {
  Iterator& from = iterator();
  RunAnswer answer;
  try {
    answer.has_element = from.Next(&answer.element);
    if (answer.has_element) CheckElement(answer.element, spec_);
  } catch (...) {
    answer.status = Status::FromCurrentException();
  }
  if (next_ && (answer.has_element || !answer.status.ok())) ++*next_;
  return answer;
}

RunAnswer DatasetRun::State::ElementAt(const Request& request) {
  const int64_t index = request.index;
  const auto found =
      std::find_if(passed_.begin(), passed_.end(), [&](const Passed& one) { return one.index == index; });
  if (found != passed_.end()) {
    RunAnswer answer = std::move(found->answer);
    passed_bytes_ -= found->bytes;
    passed_.erase(found);
    return answer;
  }
  if (!next_ || index < *next_) BeginAgain();
  while (*next_ < index) {
    if (IsAnswered(request)) return {};  // its step was cancelled
    const int64_t passed = *next_;
    RunAnswer answer = TakeElement();
    if (answer.status.ok() && !answer.has_element) return answer;  // the end
    // An error is that of the step that asks for this element.
    if (answer.has_element) KeepPassed(passed, std::move(answer));
  }
  return TakeElement();
}

void DatasetRun::State::KeepPassed(int64_t index, RunAnswer answer) {
  size_t bytes = 0;
  for (const Tensor& component : answer.element) bytes += component.bytes();
  passed_.push_back({index, std::move(answer), bytes});
  passed_bytes_ += bytes;
  while (passed_bytes_ > kMostPassedBytes && passed_.size() > 1) {
    passed_bytes_ -= passed_.front().bytes;
    passed_.pop_front();
  }
}

void DatasetRun::State::BeginAgain() {
  (void)iterator();  // throws if the dataset could not be opened
  iterator_ = dataset_->MakeIterator({0, stop_});
  kept_.reset();
  passed_.clear();
  passed_bytes_ = 0;
  next_ = 0;
}

std::string DatasetRun::State::Position() {
  WireWriter out;
  out.Varint(kept_ ? 1 : 0);
  if (kept_) WriteOutcome(kept_->status, kept_->element, &out);
  out.String(iterator().Save());
  return out.Take();
}

void DatasetRun::State::GoTo(const std::string& position) {
  WireReader in(position);
  std::optional<RunAnswer> kept;
  if (in.Varint(1) != 0) {
    kept.emplace();
    ReadOutcome(&in, &kept->status, &kept->element);
    kept->has_element = true;
  }
  const std::string_view of_iterator = in.View();
  in.ExpectEnd();
  iterator().Restore(of_iterator);
  kept_ = std::move(kept);
  next_.reset();
}

namespace {

RequestPtr MakeRequest(RequestKind kind, CancellationManager* cancellation, DatasetRun::Done done,
                       std::string position = "") {
  auto request = std::make_shared<Request>();
  request->kind = kind;
  request->cancellation = cancellation;
  request->done = std::move(done);
  request->position = std::move(position);
  return request;
}

}  // namespace

DatasetRun::DatasetRun(std::string name, SerializedDataset dataset, const ElementSpec& spec, std::string position,
                       FileCheck check)
    : state_(std::make_shared<State>(std::move(name), std::move(dataset), spec, std::move(position), std::move(check))),
      thread_([state = state_] { state->Loop(); }) {}

DatasetRun::~DatasetRun() {
  state_->Stop();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // it ends after the answer that it is giving
  } else {
    thread_.join();
  }
}

void DatasetRun::WaitUntilOpen(CancellationManager* cancellation, Done done) {
  state_->Ask(MakeRequest(RequestKind::kOpen, cancellation, std::move(done)));
}

void DatasetRun::Next(CancellationManager* cancellation, Done done) {
  state_->Ask(MakeRequest(RequestKind::kNext, cancellation, std::move(done)));
}

void DatasetRun::At(int64_t index, CancellationManager* cancellation, Done done) {
  RequestPtr request = MakeRequest(RequestKind::kNext, cancellation, std::move(done));
  request->index = index;
  state_->Ask(std::move(request));
}

void DatasetRun::Save(CancellationManager* cancellation, Done done) {
  state_->Ask(MakeRequest(RequestKind::kSave, cancellation, std::move(done)));
}

void DatasetRun::Restore(std::string position, CancellationManager* cancellation, Done done) {
  state_->Ask(MakeRequest(RequestKind::kRestore, cancellation, std::move(done), std::move(position)));
}

void DatasetRun::Retire() { state_->Retire(); }
bool DatasetRun::ended() const { return state_->ended(); }

}  // namespace cohort::data
