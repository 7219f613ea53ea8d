// FakeDriver. A stream (Queue) is a thread with a list of pieces of work. An event points to a Marker, which the stream
// of its last Record sets. A capture is a list of pieces of work in a Graph; a launch of the graph is one piece of work
// that runs all of them. A card that has failed runs no work any more, but sets markers, so that waits end.
#include "cohort/backends/cuda/fake/fake_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "cohort/backends/cuda/fake/fake_card_state.h"
#include "cohort/backends/cuda/kernel_not_loaded.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::cuda {
namespace {

constexpr size_t kSharedBytes = 227 * 1024;  // as much as an H100 has

// Counts down to the call that is to fail. Returns whether this is the one. 0 means that none is.
bool ComesToZero(std::atomic<int64_t>& left) { return left.load() > 0 && left.fetch_sub(1) == 1; }

// The clock of the stream whose thread this is.
thread_local double microseconds_spent = 0;

}  // namespace

void SpendFakeTime(double microseconds) { microseconds_spent += microseconds; }

struct FakeDriver::Marker {
  Mutex mu;
  CondVar changed;
  bool reached COHORT_GUARDED_BY(mu) = false;
  double at COHORT_GUARDED_BY(mu) = 0;  // on the clock of the stream that has reached it

  void Reach() {
    MutexLock lock(mu);
    reached = true;
    at = microseconds_spent;
    changed.NotifyAll();
  }
  bool IsReached() {
    MutexLock lock(mu);
    return reached;
  }
  void Wait() {
    MutexLock lock(mu);
    while (!reached) changed.Wait(mu);  // ends: a stream sets the markers that it has, even of a card that has failed
  }
};

struct FakeDriver::Graph {
  std::vector<std::function<void()>> work;
  std::thread::id thread;
  std::string invalid;  // why the capture cannot become a graph
};

struct FakeDriver::Event {
  int card;
  EventUse use;
  Mutex mu;
  std::shared_ptr<Marker> last COHORT_GUARDED_BY(mu);       // null: not recorded yet
  const void* captured_by COHORT_GUARDED_BY(mu) = nullptr;  // the stream whose capture has recorded it
};

// One stream.
class FakeDriver::Queue {
 public:
  Queue(int card, CardState& state, const std::string& name, const FakeDriverOptions& options, uint64_t seed)
      : card_(card), state_(state), thread_([this, name, options, seed] {
          SetThreadName(name);
          BecomeThreadOfCard();
          Loop(options, seed);
        }) {}
  ~Queue() { Stop(); }
  // Ends the thread when it has done all work. Call it on one thread at a time.
  void Stop() {
    {
      MutexLock lock(mu_);
      stopping_ = true;
    }
    wake_.NotifyAll();
    if (thread_.joinable()) thread_.join();
  }
  int card() const { return card_; }
  // Whether a kernel was ever enqueued.
  bool has_kernels() const { return has_kernels_; }
  void set_has_kernels() { has_kernels_ = true; }

  // Runs `work` after all work before it, or records it if the stream is being captured. A piece of work with `always`
  // runs also on a card that has failed.
  void Add(std::function<void()> work, bool always = false) {
    MutexLock lock(mu_);
    if (capture_ != nullptr) {
      if (capture_->thread != std::this_thread::get_id()) Invalidate("another thread enqueued work on the stream");
      capture_->work.push_back(std::move(work));
      return;
    }
    queue_.push_back({std::move(work), always});
    wake_.NotifyOne();
  }
  bool capturing() {
    MutexLock lock(mu_);
    return capture_ != nullptr;
  }
  void Begin() {
    MutexLock lock(mu_);
    if (capture_ != nullptr)
      throw InternalError("[fake driver] expected one capture of a stream at a time; got a second");
    capture_ = std::make_unique<Graph>();
    capture_->thread = std::this_thread::get_id();
  }
  std::unique_ptr<Graph> End() {
    MutexLock lock(mu_);
    return std::move(capture_);
  }
  void MakeInvalid(const char* why) {
    MutexLock lock(mu_);
    if (capture_ != nullptr) Invalidate(why);
  }
  void WaitUntilIdle() {
    const auto marker = std::make_shared<Marker>();
    {
      MutexLock lock(mu_);
      if (ended_) return;
      queue_.push_back({[marker] { marker->Reach(); }, true});
      wake_.NotifyOne();
    }
    marker->Wait();
  }

 private:
  struct Piece {
    std::function<void()> work;
    bool always;
  };
  void Invalidate(const char* why) COHORT_REQUIRES(mu_) {
    if (capture_->invalid.empty()) capture_->invalid = why;
  }

  void Loop(const FakeDriverOptions& options, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::bernoulli_distribution delayed(options.delay_probability);
    std::uniform_int_distribution<int64_t> microseconds(0, options.longest_delay.count());
    for (;;) {
      Piece piece;
      {
        MutexLock lock(mu_);
        while (queue_.empty()) {
          if (stopping_) {
            ended_ = true;
            return;
          }
          wake_.Wait(mu_);  // ends: the destructor notifies
        }
        piece = std::move(queue_.front());
        queue_.pop_front();
      }
      if (delayed(random)) std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
      if (state_.BeginWork(piece.always)) piece.work();
    }
  }

  const int card_;
  CardState& state_;
  std::atomic<bool> has_kernels_{false};
  Mutex mu_;
  CondVar wake_;
  std::deque<Piece> queue_ COHORT_GUARDED_BY(mu_);
  std::unique_ptr<Graph> capture_ COHORT_GUARDED_BY(mu_);  // null: the stream is not being captured
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  bool ended_ COHORT_GUARDED_BY(mu_) = false;  // the thread runs nothing any more
  std::thread thread_;
};

namespace {
// The stream that this thread captures.
thread_local void* captured_stream = nullptr;
}  // namespace

FakeDriver::FakeDriver(const FakeDriverOptions& options)
    : options_(options), control_(options.cards), next_seed_(options.seed) {}

FakeDriver::~FakeDriver() {
  MutexLock lock(mu_);
  for (const auto& [data, bytes] : pinned_) DeleteFakeMemory(data);
}

void FakeDriver::CheckCard(int card) const {
  const CardState& state = State(card);
  MutexLock lock(state.mu);
  if (!state.failed) return;
  CardError(CardFault::kBroken, "the fake driver", card, "an illegal memory access was encountered (700)")
      .ThrowIfError();
}

void FakeDriver::NeedContext(int card, const char* call) {
  CheckCard(card);
  CardState& state = State(card);
  MutexLock lock(state.mu);
  if (!state.has_context && state.fault == CardFault::kOutOfMemory) {
    CardError(state.fault, call, card, "out of memory (2, on the fake driver)").ThrowIfError();
  }
  if (!state.has_context && state.fault == CardFault::kNotAvailable) {
    CardError(state.fault, call, card, "CUDA-capable device(s) is/are busy or unavailable (46, on the fake driver)")
        .ThrowIfError();
  }
  if (state.has_context) return;
  Take(card, call);
  state.has_context = true;
}

void FakeDriver::Take(int card, const char* call) {
  if (!control_.takings_.Fails()) return;
  CardError(CardFault::kOutOfMemory, call, card, "out of memory (2, on the fake driver)").ThrowIfError();
}

void FakeDriver::RefuseInCapture(const char* call) {
  if (captured_stream == nullptr) return;
  static_cast<Queue*>(captured_stream)->MakeInvalid(call);
  throw FailedPreconditionError(
      StrCat("[cuda] operation not permitted when stream is capturing (900, on the fake driver): ", call));
}

void FakeDriver::RefuseIfWanted(Queue& queue) {
  if (queue.capturing() && ComesToZero(control_.captures_left_)) RefuseInCapture("work that the test refuses");
}

CardInfo FakeDriver::Card(int card) {
  (void)State(card);
  CardInfo info;
  info.name = "Fake Card";
  info.pci_bus_id = StrCat("0000:0", card + 1, ":00.0");
  info.memory_bytes = options_.memory_bytes;
  info.major = 9;
  if (const auto problem = options_.problems.find(card); problem != options_.problems.end()) {
    info.problem = problem->second;
  }
  return info;
}

size_t FakeDriver::FreeBytes(int card) {
  NeedContext(card, "FreeBytes");
  return options_.memory_bytes - control_.bytes_allocated(card);
}

void* FakeDriver::Allocate(int card, size_t bytes) {
  RefuseInCapture("Allocate");
  NeedContext(card, "Allocate");
  CardState& state = State(card);
  const bool one_fails = control_.allocations_.Fails(), taking_fails = control_.takings_.Fails();
  if (one_fails || taking_fails) return nullptr;
  MutexLock lock(state.mu);
  if (bytes > options_.memory_bytes - state.used) return nullptr;
  void* data = NewCardMemory(bytes);
  if (data == nullptr) return nullptr;
  state.used += bytes;
  state.blocks[data] = bytes;
  return data;
}

void FakeDriver::Free(int card, void* data) {
  RefuseInCapture("Free");
  CardState& state = State(card);
  std::vector<std::shared_ptr<Queue>> streams;  // another thread may destroy one meanwhile
  {
    MutexLock lock(state.mu);
    streams = state.streams;
  }
  for (const auto& stream : streams) stream->WaitUntilIdle();
  MutexLock lock(state.mu);
  const auto found = state.blocks.find(data);
  if (found == state.blocks.end())
    throw InternalError("[fake driver] expected memory of the card to free; got another address");
  state.used -= found->second;
  DeleteCardMemory(data, found->second);
  state.blocks.erase(found);
}

void* FakeDriver::AllocatePinned(int card, size_t bytes) {
  RefuseInCapture("AllocatePinned");
  NeedContext(card, "AllocatePinned");
  const bool taking_fails = control_.takings_.Fails();
  if (taking_fails || control_.no_pinned_ || ComesToZero(control_.pinned_left_)) return nullptr;
  void* data = NewFakeMemory(bytes);
  if (data == nullptr) return nullptr;
  ++control_.pinned_;
  MutexLock lock(mu_);
  pinned_[data] = bytes;
  return data;
}

void FakeDriver::FreePinned(int, void* data) {
  RefuseInCapture("FreePinned");
  MutexLock lock(mu_);
  if (pinned_.erase(data) == 0)
    throw InternalError("[fake driver] expected pinned memory to free; got another address");
  --control_.pinned_;
  DeleteFakeMemory(data);
}

StreamHandle FakeDriver::MakeStream(int card, const std::string& name) {
  RefuseInCapture("MakeStream");
  NeedContext(card, "MakeStream");
  Take(card, "MakeStream");
  CardState& state = State(card);
  const auto queue = std::make_shared<Queue>(card, state, name, options_, next_seed_++);
  MutexLock lock(state.mu);
  state.streams.push_back(queue);
  return {queue.get(), card};
}

void FakeDriver::Destroy(int card, StreamHandle stream) {
  CardState& state = State(card);
  std::shared_ptr<Queue> destroyed;
  {
    MutexLock lock(state.mu);
    const auto found = std::find_if(state.streams.begin(), state.streams.end(),
                                    [&](const auto& one) { return one.get() == stream.native; });
    if (found == state.streams.end())
      throw InternalError("[fake driver] expected a stream to destroy; got another one");
    destroyed = std::move(*found);
    state.streams.erase(found);
  }
  destroyed->Stop();
}

EventHandle FakeDriver::MakeEvent(int card, EventUse use) {
  NeedContext(card, "MakeEvent");
  Take(card, "MakeEvent");
  ++control_.events_;
  return {new Event{card, use, {}, {}, {}}, card};
}

void FakeDriver::Destroy(int, EventHandle event) {
  --control_.events_;
  delete static_cast<Event*>(event.native);
}

void FakeDriver::Record(EventHandle event, StreamHandle stream) {
  auto* queue = static_cast<Queue*>(stream.native);
  auto* target = static_cast<Event*>(event.native);
  CheckCard(queue->card());
  if (queue->capturing()) {
    MutexLock lock(target->mu);
    target->captured_by = queue;
    return;
  }
  auto marker = std::make_shared<Marker>();
  {
    MutexLock lock(target->mu);
    target->last = marker;
    target->captured_by = nullptr;
  }
  queue->Add([marker = std::move(marker)] { marker->Reach(); }, true);
}

void FakeDriver::Wait(StreamHandle stream, EventHandle event) {
  auto* queue = static_cast<Queue*>(stream.native);
  auto* of = static_cast<Event*>(event.native);
  CheckCard(queue->card());
  std::shared_ptr<Marker> marker;
  const void* captured_by = nullptr;
  {
    MutexLock lock(of->mu);
    marker = of->last;
    captured_by = of->captured_by;
  }
  if (captured_by == queue) return;
  if (captured_by != nullptr || queue->capturing()) {
    if (captured_stream != nullptr)
      static_cast<Queue*>(captured_stream)->MakeInvalid("a wait for work outside of the capture");
    throw FailedPreconditionError(
        "[cuda] dependency created on uncaptured work in another stream (905, on the fake driver)");
  }
  if (marker != nullptr) queue->Add([marker = std::move(marker)] { marker->Wait(); }, true);
}

Status FakeDriver::IsReached(EventHandle event, bool* reached) {
  RefuseInCapture("IsReached");
  auto* of = static_cast<Event*>(event.native);
  std::shared_ptr<Marker> marker;
  {
    MutexLock lock(of->mu);
    if (of->captured_by != nullptr) return Status(Code::kInternal, "[fake driver] the event belongs to a capture");
    marker = of->last;
  }
  *reached = marker == nullptr || marker->IsReached();
  if (!*reached) return {};
  try {
    CheckCard(of->card);
  } catch (...) {
    return Status::FromCurrentException();
  }
  return {};
}

int FakeDriver::CardCount() { return options_.cards; }

Status FakeDriver::Synchronize(EventHandle event) {
  RefuseInCapture("Synchronize");
  auto* of = static_cast<Event*>(event.native);
  std::shared_ptr<Marker> marker;
  {
    MutexLock lock(of->mu);
    marker = of->last;
  }
  if (marker != nullptr) marker->Wait();
  bool reached = false;
  return IsReached(event, &reached);
}

double FakeDriver::MicrosecondsBetween(EventHandle begin, EventHandle end) {
  const auto time_of = [](const EventHandle& handle) {
    auto* event = static_cast<Event*>(handle.native);
    MutexLock lock(event->mu);
    if (event->use != EventUse::kOrderAndTime || event->last == nullptr || !event->last->IsReached()) {
      throw InternalError("[cuda] device not ready (600, on the fake driver): expected reached events with times");
    }
    MutexLock marker_lock(event->last->mu);
    return event->last->at;
  };
  return time_of(end) - time_of(begin);
}

bool FakeDriver::IsPinned(const void* data, size_t bytes) const {
  MutexLock lock(mu_);
  return Contains(pinned_, data, bytes);
}

void FakeDriver::CheckSides(const void* to, const void* from, size_t bytes, Copy direction, bool capturing) const {
  const bool to_host = direction == Copy::kToHost, from_host = direction == Copy::kFromHost;
  if (IsOnCard(to, bytes) == to_host || IsOnCard(from, bytes) == from_host) {
    throw InternalError(
        "[cuda] invalid argument (1, on the fake driver): the direction of a copy is not that of its addresses");
  }
  // A graph copies when it is launched. Other memory may be gone then.
  if (!capturing || direction == Copy::kOnDevice || IsPinned(to_host ? to : from, bytes)) return;
  throw InternalError("[fake driver] expected pinned memory in a copy of a graph; got other memory of the host");
}

void FakeDriver::EnablePeerAccess(int card, int peer) {
  RefuseInCapture("EnablePeerAccess");
  NeedContext(card, "EnablePeerAccess");
  if (options_.has_peer_access) control_.Join(card, peer);
}

void FakeDriver::CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) {
  auto* queue = static_cast<Queue*>(stream.native);
  CheckCard(queue->card());
  RefuseIfWanted(*queue);
  if (bytes > 0) CheckSides(to, from, bytes, direction, queue->capturing());
  control_.CountCopy(direction, bytes, queue->has_kernels(), IsPinned(direction == Copy::kToHost ? to : from, bytes));
  if (bytes == 0) return;
  if (direction == Copy::kOnDevice) control_.CountDetour(to, from, bytes);
  queue->Add([=, this] {
    std::memmove(to, from, bytes);
    if (direction == Copy::kFromHost) control_.bytes_arrived_ += static_cast<int64_t>(bytes);
  });
}

void FakeDriver::FillAsync(void* to, unsigned char value, size_t bytes, StreamHandle stream) {
  auto* queue = static_cast<Queue*>(stream.native);
  CheckCard(queue->card());
  RefuseIfWanted(*queue);
  if (bytes > 0 && !IsOnCard(to, bytes)) {
    throw InternalError("[cuda] invalid argument (1, on the fake driver): a fill is for memory of a card");
  }
  if (bytes > 0) queue->Add([=] { std::memset(to, value, bytes); });
}

void FakeDriver::CheckHasCode(const KernelCode& code, int card) const {
  const CardState& state = State(card);
  MutexLock lock(state.mu);
  if (state.fault != CardFault::kNoCode) return;
  CardError(state.fault, StrCat("Launch of ", code.name), card,
            "no kernel image is available for execution on the device (209, on the fake driver)")
      .ThrowIfError();
}

void FakeDriver::NeedLoaded(const KernelCode& code, Queue& queue) {
  CardState& state = State(queue.card());
  const bool captures = queue.capturing();
  MutexLock lock(state.mu);
  if (!captures) {
    state.loaded.insert(code.host);
  } else if (state.loaded.count(code.host) == 0) {
    throw KernelNotLoaded{[this, &code, card = queue.card()] { Load(code, card); }};
  }
}

void FakeDriver::Load(const KernelCode& code, int card) {
  RefuseInCapture("Load");
  NeedContext(card, "Load");
  CheckHasCode(code, card);
  Take(card, "Load");
  CardState& state = State(card);
  MutexLock lock(state.mu);
  state.loaded.insert(code.host);
}

const void* FakeDriver::LoadKernel(int card, const std::string& code, const char* name) {
  RefuseInCapture("LoadKernel");
  NeedContext(card, "LoadKernel");
  Take(card, "LoadKernel");
  void* const library = dlopen(code.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) throw InternalError(StrCat("[fake driver] cannot load the kernel ", name, ": ", dlerror()));
  return function;
}

void FakeDriver::Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t bytes,
                        StreamHandle stream) {
  auto* queue = static_cast<Queue*>(stream.native);
  CheckCard(queue->card());
  for (int axis = 0; axis < 3; ++axis) {
    constexpr uint32_t kMostBlocks = 65535;  // in the second and third direction
    if (size.blocks[axis] == 0 || size.threads[axis] == 0 || (axis > 0 && size.blocks[axis] > kMostBlocks)) {
      throw InternalError(
          StrCat("[cuda] invalid configuration argument (9, on the fake driver) of kernel ", code.name));
    }
  }
  constexpr uint32_t kMostThreads = 1024;
  if (uint64_t{size.threads[0]} * size.threads[1] * size.threads[2] > kMostThreads ||
      size.shared_bytes > kSharedBytes) {
    throw InternalError(StrCat("[cuda] invalid argument (1, on the fake driver): kernel ", code.name, " has blocks of ",
                               size.threads[0], " x ", size.threads[1], " x ", size.threads[2], " threads and ",
                               size.shared_bytes, " bytes"));
  }
  CheckHasCode(code, queue->card());
  RefuseIfWanted(*queue);
  NeedLoaded(code, *queue);
  control_.CountLaunch(code);
  queue->set_has_kernels();
  // Kernels are arguments by value: they are as they were at the launch, or at the capture.
  std::shared_ptr<void> copy(::operator new(bytes, kFakeAlignment), DeleteFakeMemory);
  std::memcpy(copy.get(), argument, bytes);
  queue->Add([host = code.host, size, copy = std::move(copy)] { host(copy.get(), size); });
}

void FakeDriver::BeginCapture(StreamHandle stream) {
  RefuseInCapture("BeginCapture");
  auto* queue = static_cast<Queue*>(stream.native);
  CheckCard(queue->card());
  queue->Begin();
  captured_stream = queue;
}

GraphHandle FakeDriver::EndCapture(StreamHandle stream) {
  auto* queue = static_cast<Queue*>(stream.native);
  captured_stream = nullptr;
  std::unique_ptr<Graph> graph = queue->End();
  if (graph == nullptr) throw InternalError("[fake driver] expected a capture to end; got none");
  if (!graph->invalid.empty()) {
    throw FailedPreconditionError(StrCat(
        "[cuda] operation failed due to a previous error during capture (901, on the fake driver): ", graph->invalid));
  }
  Take(queue->card(), "EndCapture");
  ++control_.graphs_;
  ++control_.graphs_made_;
  return {graph.release(), queue->card()};
}

bool FakeDriver::DropCapture(StreamHandle stream) {
  captured_stream = nullptr;
  const std::unique_ptr<Graph> graph = static_cast<Queue*>(stream.native)->End();
  return graph != nullptr && graph->invalid.empty();
}

void FakeDriver::LaunchGraph(GraphHandle graph, StreamHandle stream) {
  auto* queue = static_cast<Queue*>(stream.native);
  CheckCard(queue->card());
  control_.CountGraphLaunch();
  // The pieces of work are copied, so that the graph can be destroyed while it runs, as on a card.
  queue->Add([&state = State(queue->card()), pieces = static_cast<Graph*>(graph.native)->work] {
    state.BeginGraph();
    for (const auto& work : pieces) work();
  });
}

void FakeDriver::Destroy(GraphHandle graph) {
  --control_.graphs_;
  delete static_cast<Graph*>(graph.native);
}

}  // namespace cohort::cuda
