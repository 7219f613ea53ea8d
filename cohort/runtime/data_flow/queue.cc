// Each kernel that enqueues or closes is a Put, and each that dequeues is a Take. Both stand in lists (puts_, takes_),
// and only the first one of each list is served. Serve runs after every change, under the lock, until neither list goes
// on. Kernels that have ended are collected, and their steps continue without the lock (EndAll).
#include "cohort/runtime/data_flow/queue.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"

namespace cohort {
namespace {

// Returns the component `component` of all elements as one tensor with a new axis 0.
Tensor StackComponent(const std::vector<QueueResource::Element>& elements, size_t component, DType dtype,
                      const Shape& shape) {
  if (IsHandle(dtype)) {
    throw UnimplementedError(StrCat("[queue] expected components of numbers or strings in a batch; got ", dtype,
                                    "; dequeue the elements one by one"));
  }
  Tensor all(dtype, Shape{static_cast<int64_t>(elements.size())}.Concat(shape));
  const int64_t size = shape.num_elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& one = elements[i][component];
    if (dtype == DType::kString) {
      std::copy_n(one.data<std::string>(), size, all.data<std::string>() + static_cast<int64_t>(i) * size);
    } else if (one.bytes() > 0) {
      std::memcpy(static_cast<char*>(all.raw_data()) + i * one.bytes(), one.raw_data(), one.bytes());
    }
  }
  return all;
}

std::string TypesText(const std::vector<DType>& types) { return StrCat("[", StrJoin(types, ", "), "]"); }
std::string ShapesText(const std::vector<Shape>& shapes) { return StrCat("[", StrJoin(shapes, ", "), "]"); }

template <typename T>
void CheckSame(const std::string& name, const char* what, const T& have, const T& wanted) {
  if (have == wanted) return;
  throw InvalidArgumentError(
      StrCat("[queue] Shared queue '", name, "' has ", what, " ", have, " but requested ", what, " was ", wanted));
}

PhiloxWords Generator(const QueueSpec& spec) {
  if (spec.seed == 0 && spec.seed2 == 0) return PhiloxWords(Philox(NewIncarnation(), NewIncarnation()));
  return PhiloxWords(Philox(static_cast<uint64_t>(spec.seed), static_cast<uint64_t>(spec.seed2)));
}

}  // namespace

std::string QueueResource::Describe() const { return StrCat(kind(), " '", spec_.name, "'"); }

void QueueResource::CheckIsAs(const QueueSpec& wanted) const {
  const std::string& name = spec_.name;
  CheckSame(name, "capacity", spec_.capacity, wanted.capacity);
  CheckSame(name, "component types", TypesText(spec_.component_types), TypesText(wanted.component_types));
  CheckSame(name, "component shapes", ShapesText(spec_.shapes), ShapesText(wanted.shapes));
  CheckSame(name, "min_after_dequeue", spec_.min_after_dequeue, wanted.min_after_dequeue);
}

void QueueResource::CheckElement(const Element& element, bool batched) const {
  if (element.size() != spec_.component_types.size()) {
    throw InvalidArgumentError(StrCat("[queue] Wrong number of components in tuple of ", Describe(), ". Expected ",
                                      spec_.component_types.size(), ", got ", element.size()));
  }
  for (size_t i = 0; i < element.size(); ++i) {
    if (element[i].dtype() != spec_.component_types[i]) {
      throw InvalidArgumentError(StrCat("[queue] Type mismatch in tuple component ", i, " of ", Describe(),
                                        ". Expected ", spec_.component_types[i], ", got ", element[i].dtype()));
    }
    const Shape& got = element[i].shape();
    if (batched && (got.rank() == 0 || got.dim(0) != element[0].shape().dim(0))) {
      throw InvalidArgumentError(
          StrCat("[queue] All input tensors of an enqueue_many must have the same size in the "
                 "0th dimension. Component ",
                 i, " of ", Describe(), " has the shape ", got, ", component 0 the shape ", element[0].shape()));
    }
    if (spec_.shapes.empty()) continue;
    Shape expected = spec_.shapes[i];
    if (batched) expected = Shape{got.dim(0)}.Concat(expected);
    if (expected != got) {
      throw InvalidArgumentError(StrCat("[queue] Shape mismatch in tuple component ", i, " of ", Describe(),
                                        ". Expected ", expected, ", got ", got));
    }
  }
}

template <typename Waiting>
void QueueResource::Add(Waiting waiting) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    std::deque<Waiting>& list = ListOf(waiting);
    const uint64_t id = waiting.id = next_id_++;
    list.push_back(std::move(waiting));
    Serve(&ended);
    const auto cancel = [queue = shared_from_this(), id](const Status& why) { queue->Cancel(id, why); };
    if (auto cancelled = WatchLast<Waiting>(list, id, cancel)) {
      const Status why = cancelled->kernel.WhyCancelled();
      Drop(std::move(*cancelled), why, &ended);
    }
  }
  EndAll(std::move(ended));
}

void QueueResource::Enqueue(PendingKernel kernel, std::vector<Element> elements) {
  Add(Put{0, std::move(kernel),
          std::deque<Element>(std::make_move_iterator(elements.begin()), std::make_move_iterator(elements.end())),
          false});
}

void QueueResource::Dequeue(PendingKernel kernel, const Request& request) {
  if (request.count < 0) {
    return kernel.End(Status(Code::kInvalidArgument, StrCat("[queue] DequeueManyOp requested ", request.count,
                                                            " < 0 elements of ", Describe())));
  }
  if (request.batched && spec_.shapes.empty()) {
    return kernel.End(
        Status(Code::kInvalidArgument, StrCat("[queue] ", kind(),
                                              "'s DequeueMany and DequeueUpTo require the components to have "
                                              "specified shapes; '",
                                              spec_.name, "' has none")));
  }
  Add(Take{0, std::move(kernel), request, {}});
}

void QueueResource::Close(PendingKernel kernel, bool cancel_pending_enqueues) {
  if (!cancel_pending_enqueues) return Add(Put{0, std::move(kernel), {}, true});
  EndedList ended;
  {
    MutexLock lock(mu_);
    closed_ = true;
    FailPuts(Status(Code::kCancelled, StrCat("[queue] Enqueue operation was cancelled: ", Describe(), " was closed")),
             &ended);
    ended.push_back({std::move(kernel), removed_, {}, false});
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void QueueResource::Reset(PendingKernel kernel) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    FailPuts(Status(Code::kCancelled, StrCat("[queue] Enqueue operation was cancelled: ", Describe(), " was reset")),
             &ended);
    elements_.clear();
    held_.clear();
    failed_.clear();
    for (Take& take : takes_) take.taken.clear();
    closed_ = false;
    ended.push_back({std::move(kernel), removed_, {}, false});
  }
  EndAll(std::move(ended));
}

void QueueResource::FailSession(PendingKernel kernel, const Status& error) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    failed_[kernel.session()] = error;
    for (auto take = takes_.begin(); take != takes_.end();) {
      const Status status = ErrorOf(*take);
      if (status.ok()) {
        ++take;
        continue;
      }
      Drop(std::move(*take), status, &ended);
      take = takes_.erase(take);
    }
    ended.push_back({std::move(kernel), removed_, {}, false});
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

int64_t QueueResource::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(elements_.size());
}

bool QueueResource::is_closed() const {
  MutexLock lock(mu_);
  return closed_;
}

void QueueResource::OnRemoved(const std::string& container) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    removed_ = Status(Code::kAborted, StrCat("[queue] ", Describe(), " was removed: the container '", container,
                                             "' was cleared; start a new session and initialize it"));
    FailPuts(removed_, &ended);
    for (Take& take : takes_) ended.push_back({std::move(take.kernel), removed_, {}, false});
    takes_.clear();
    elements_.clear();
    held_.clear();
  }
  EndAll(std::move(ended));
}

void QueueResource::OnSessionEnded(uint64_t session) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    failed_.erase(session);
    ReturnHeld(session, &ended);
  }
  EndAll(std::move(ended));
}

void QueueResource::OnStepFailed(uint64_t session, int64_t step) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    const auto found = held_.find(session);
    if (found != held_.end() && found->second.step == step) ReturnHeld(session, &ended);
  }
  EndAll(std::move(ended));
}

void QueueResource::ReturnHeld(uint64_t session, EndedList* ended) {
  const auto found = held_.find(session);
  if (found == held_.end()) return;
  if (!closed_) elements_.push_front(std::move(found->second.element));
  held_.erase(found);
  Serve(ended);
}

void QueueResource::Cancel(uint64_t id, const Status& why) {
  EndedList ended;
  {
    MutexLock lock(mu_);
    if (auto put = TakeOut(puts_, id)) Drop(std::move(*put), why, &ended);
    if (auto take = TakeOut(takes_, id)) Drop(std::move(*take), why, &ended);
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void QueueResource::Drop(Put put, const Status& why, EndedList* ended) {
  ended->push_back({std::move(put.kernel), why, {}, false});
}

void QueueResource::Drop(Take take, const Status& why, EndedList* ended) {
  Return(&take.taken);
  ended->push_back({std::move(take.kernel), why, {}, false});
}

void QueueResource::Return(std::vector<Element>* taken) {
  elements_.insert(elements_.begin(), std::make_move_iterator(taken->begin()), std::make_move_iterator(taken->end()));
  taken->clear();
}

void QueueResource::FailPuts(const Status& why, EndedList* ended) {
  for (Put& put : puts_) ended->push_back({std::move(put.kernel), why, {}, false});
  puts_.clear();
}

void QueueResource::Serve(EndedList* ended) {
  for (bool more = true; more;) {
    more = false;
    while (!puts_.empty() && ServePut(ended)) more = true;
    while (!takes_.empty() && ServeTake(ended)) more = true;
    // A Take that goes on waiting may have made room for the first Put.
    if (!puts_.empty() && !closed_ && static_cast<int64_t>(elements_.size()) < spec_.capacity) more = true;
  }
}

bool QueueResource::ServePut(EndedList* ended) {
  Put& put = puts_.front();
  Status status = removed_;
  if (status.ok() && closed_) {
    status = Status(Code::kCancelled, put.closes ? StrCat("[queue] Queue '", spec_.name, "' is already closed.")
                                                 : StrCat("[queue] ", Describe(), " is closed."));
  }
  if (status.ok() && put.closes) closed_ = true;
  while (status.ok() && !put.elements.empty()) {
    if (spec_.capacity >= 0 && static_cast<int64_t>(elements_.size()) >= spec_.capacity) return false;
    elements_.push_back(std::move(put.elements.front()));
    put.elements.pop_front();
  }
  ended->push_back({std::move(put.kernel), status, {}, false});
  puts_.pop_front();
  return true;
}

bool QueueResource::ServeTake(EndedList* ended) {
  Take& take = takes_.front();
  Status status = removed_.ok() ? ErrorOf(take) : removed_;
  const auto missing = [&] { return take.request.count - static_cast<int64_t>(take.taken.size()); };
  if (status.ok() && closed_ && static_cast<int64_t>(elements_.size()) < missing()) {
    Return(&take.taken);
    const auto size = static_cast<int64_t>(elements_.size());
    if (take.request.allow_fewer && size > 0) {
      take.request.count = size;
    } else {
      status = Status(Code::kOutOfRange, StrCat("[queue] ", Describe(), " is closed and has insufficient elements (",
                                                "requested ", take.request.count, ", current size ", size, ")"));
    }
  }
  if (status.ok()) {
    while (missing() > 0 && Available() > 0) take.taken.push_back(Pop());
    if (missing() > 0) return false;
    Remember(take);
  }
  ended->push_back({std::move(take.kernel), status, std::move(take.taken), take.request.batched});
  takes_.pop_front();
  return true;
}

Status QueueResource::ErrorOf(const Take& take) const {
  if (failed_.empty()) return {};
  const auto found = failed_.find(take.kernel.session());
  return found == failed_.end() ? Status() : found->second;
}

void QueueResource::Remember(const Take& take) {
  if (take.request.held_by_session) held_[take.kernel.session()] = {take.kernel.step(), take.taken.front()};
}

void QueueResource::EndAll(EndedList ended) {
  const std::shared_ptr<QueueResource> alive = shared_from_this();  // a step that goes on may remove the queue
  for (Ended& one : ended) {
    one.kernel.End(one.status, [&](KernelContext& ctx) {
      for (int i = 0; i < ctx.num_outputs(); ++i) {
        const auto component = static_cast<size_t>(i);
        if (one.batched) {
          ctx.SetOutput(i,
                        StackComponent(one.elements, component, ctx.node().output_dtype(i), spec_.shapes[component]));
        } else {
          ctx.SetOutput(i, one.elements.front()[component]);
        }
      }
    });
  }
}

QueueResource::Element FifoQueueResource::Pop() {
  Element element = std::move(elements_.front());
  elements_.pop_front();
  return element;
}

ShuffleQueueResource::ShuffleQueueResource(QueueSpec spec)
    : QueueResource(std::move(spec)), random_(Generator(this->spec())) {}

QueueResource::Element ShuffleQueueResource::Pop() {
  const size_t index = random_() % elements_.size();
  Element element = std::move(elements_[index]);
  elements_[index] = std::move(elements_.back());
  elements_.pop_back();
  return element;
}

}  // namespace cohort
