// NcclLane. The thread connects, and then does what is there to do: it passes calls on whose inputs are complete
// (PassReady), and runs the call of the next turn (Run). A running call is begun in the library, and the thread waits
// until it has ended on the device (AwaitIdle). If it takes too long, the other members are asked how far they are, and
// those that are behind are named (DescribeLate). The library has no way to wait for its errors, so the thread asks for
// them regularly; it is woken when the device has ended the collective.
#include "cohort/collective/nccl/nccl_lane.h"

#include <algorithm>

#include "cohort/collective/nccl/limits.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {
namespace {

// A collective has kNcclCollectiveLimit, and this time for its bytes. All members have begun it and have their inputs.
// The first collective of its kind and size may take kNcclConnectLimit if all members say that they are inside: NCCL
// makes connections when they are first needed.
constexpr size_t kLeastBytesPerMillisecond = 16 * 1024;  // a slow network
constexpr std::chrono::microseconds kFirstLook{20};
constexpr std::chrono::microseconds kLongestLook{5000};

// Tells the engine that a call of the library is under way.
class LibraryCallMark {
 public:
  explicit LibraryCallMark(const NcclLaneEvents& events, std::chrono::steady_clock::duration limit = kNcclCallLimit)
      : events_(events) {
    events_.on_call(limit);
  }
  ~LibraryCallMark() { events_.on_return(); }
  LibraryCallMark(const LibraryCallMark&) = delete;
  LibraryCallMark& operator=(const LibraryCallMark&) = delete;

 private:
  const NcclLaneEvents& events_;
};

double InSeconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

LibraryCollective LibraryCollectiveOf(CallKind kind) {
  switch (kind) {
    case CallKind::kAllGather: return LibraryCollective::kAllGather;
    case CallKind::kBroadcast: return LibraryCollective::kBroadcast;
    case CallKind::kReduceScatter: return LibraryCollective::kReduceScatter;
    case CallKind::kAllReduce:
    case CallKind::kBarrier: break;
  }
  return LibraryCollective::kAllReduce;
}

NcclLane::NcclLane(const MemberList& members, int rank, std::shared_ptr<Device> device, NcclLaneEvents events)
    : members_(members), rank_(rank), events_(std::move(events)), device_(std::move(device)) {
  MutexLock lock(shared_->mu);
  shared_->device = device_;
}

void NcclLane::Start(CollectiveLibrary* library, std::string id) {
  thread_ = std::thread([this, library, id = std::move(id)] { Loop(library, id); });
}

Status NcclLane::AwaitConnected() {
  MutexLock lock(shared_->mu);
  const auto until = Clock::now() + kNcclConnectLimit + kNcclCollectiveLimit;
  while (!shared_->connected) {
    if (shared_->changed.WaitUntil(shared_->mu, until)) continue;
    return Status(Code::kDeadlineExceeded,
                  StrCat("[collective] ", members_.DescribeRank(rank_), " is in a call of NCCL that does not return"));
  }
  return shared_->connect_status;
}

void NcclLane::Prepare(CollectiveCall&& call) {
  std::shared_ptr<Device> device;
  {
    MutexLock lock(shared_->mu);
    device = shared_->device;
  }
  Tensor input = device == nullptr ? Tensor() : device->CopyFromHostAsync(call.input);
  const auto ready = device == nullptr ? nullptr : device->compute_stream()->Record();
  int64_t number = 0;
  Status stopped;
  {
    MutexLock lock(shared_->mu);
    if (shared_->stopped) stopped = shared_->why;
    number = ++shared_->last_prepared;
    if (stopped.ok()) {
      call.input = std::move(input);
      shared_->prepared[number].call = std::move(call);
    }
  }
  if (!stopped.ok()) return EndCall(call, members_, stopped, {});
  ready->OnReady([shared = shared_, number](const Status& status) {
    MutexLock lock(shared->mu);
    const auto found = shared->prepared.find(number);
    if (found == shared->prepared.end()) return;
    found->second.reached = true;
    found->second.status = status;
    shared->woken = true;
    shared->changed.NotifyAll();
  });
}

void NcclLane::Add(int64_t turn, std::shared_ptr<TurnCall> call) {
  MutexLock lock(shared_->mu);
  shared_->turns[turn] = std::move(call);
  shared_->changed.NotifyAll();
}

NcclStage NcclLane::StageOf(int64_t turn) const {
  MutexLock lock(shared_->mu);
  if (turn < shared_->next) return NcclStage::kEnded;
  return turn == shared_->next ? shared_->stage : NcclStage::kNotBegun;
}

void NcclLane::OnAnswer(int from, int64_t turn, NcclStage stage) {
  MutexLock lock(shared_->mu);
  if (turn == shared_->next) shared_->answers[from] = stage;
}

void NcclLane::Stop(const Status& why) {
  std::map<int64_t, Prepared> prepared;
  {
    MutexLock lock(shared_->mu);
    shared_->stopped = true;
    shared_->why = why;
    prepared.swap(shared_->prepared);
    shared_->changed.NotifyAll();
  }
  for (auto& [number, one] : prepared) EndCall(one.call, members_, why, {});
}

void NcclLane::Join() {
  if (thread_.joinable()) thread_.join();
}

void NcclLane::Loop(CollectiveLibrary* library, const std::string& id) {
  SetThreadName("cohort-nccl");
  Status status;
  try {
    if (library != nullptr) Connect(*library, id);
  } catch (...) {
    status = Status::FromCurrentException();
  }
  {
    MutexLock lock(shared_->mu);
    shared_->connected = true;
    shared_->connect_status = status;
    shared_->changed.NotifyAll();
  }
  int64_t turn = 0;
  while (const auto call = Next(&turn)) Run(turn, call);
  Abort();
  std::shared_ptr<Device> also;  // is released without the lock
  {
    MutexLock lock(shared_->mu);
    also.swap(shared_->device);
  }
  const std::shared_ptr<Device> device = std::move(device_);
  events_.on_end();
}

void NcclLane::Connect(CollectiveLibrary& library, const std::string& id) {
  {
    const LibraryCallMark in_call(events_, kNcclConnectLimit);  // makes a context of the card, and loads code into it
    communicator_ = library.Connect(*device_, id, rank_, members_.size(), [shared = shared_] {
      MutexLock lock(shared->mu);
      shared->woken = true;
      shared->changed.NotifyAll();
    });
  }
  AwaitIdle(kNcclConnectLimit, nullptr, [&] {
    return Status(Code::kDeadlineExceeded,
                  StrCat("[collective] expected that ", library.Describe(), " connects ", members_.DescribeRank(rank_),
                         " to the others within ", kNcclConnectLimit.count(), " s; it does not"));
  });
}

void NcclLane::PassReady() {
  std::vector<Prepared> ready;
  {
    MutexLock lock(shared_->mu);
    for (auto it = shared_->prepared.begin(); it != shared_->prepared.end();) {
      if (!it->second.reached) {
        ++it;
        continue;
      }
      ready.push_back(std::move(it->second));
      it = shared_->prepared.erase(it);
    }
  }
  for (Prepared& one : ready) {
    if (!one.status.ok()) {
      EndCall(one.call, members_, events_.explain(one.status), {});
    } else {
      events_.on_ready(std::move(one.call));
    }
  }
}

std::shared_ptr<TurnCall> NcclLane::Next(int64_t* turn) {
  for (;;) {
    PassReady();
    MutexLock lock(shared_->mu);
    if (shared_->stopped) return nullptr;  // the engine ends the calls that have not run
    const auto first = shared_->turns.begin();
    if (first != shared_->turns.end() && first->first == shared_->next) {
      *turn = first->first;
      std::shared_ptr<TurnCall> call = std::move(first->second);
      shared_->turns.erase(first);
      shared_->answers.clear();
      return call;
    }
    if (!shared_->woken) shared_->changed.Wait(shared_->mu);  // Stop ends it
    shared_->woken = false;
  }
}

void NcclLane::Run(int64_t turn, const std::shared_ptr<TurnCall>& call) {
  Tensor result;
  Status status;
  static const TurnCall::WaitsFor waits_for = [] { return -1; };
  const bool ran = call->Run(waits_for, [&](CollectiveCall& running) {
    try {
      result = Compute(turn, running);
    } catch (...) {
      status = events_.explain(Status::FromCurrentException());
      // The library uses the tensors until it is aborted.
      Abort();
    }
  });
  {
    MutexLock lock(shared_->mu);
    shared_->next = turn + 1;
    shared_->stage = NcclStage::kNotBegun;
  }
  if (ran) events_.finish(call, status, std::move(result));
}

Tensor NcclLane::Compute(int64_t turn, CollectiveCall& call) {
  const CallSignature& what = call.signature;
  if (what.kind == CallKind::kBarrier) return {};
  const bool to_host = call.device == nullptr;
  if (what.shape.num_elements() == 0) {
    return to_host ? Tensor(what.dtype, call.output_shape)
                   : Tensor(what.dtype, call.output_shape, device_->allocator());
  }
  if (communicator_ == nullptr) throw CancelledError("[collective] the communicator has been aborted");
  const bool in_place = what.kind == CallKind::kBroadcast && (what.root == call.rank || call.input.OwnsBufferAlone());
  Tensor output = in_place ? call.input : Tensor(what.dtype, call.output_shape, device_->allocator());
  const LibraryCollective kind = LibraryCollectiveOf(what.kind);
  const size_t bytes =
      static_cast<size_t>(what.shape.num_elements()) * DTypeSize(what.dtype) * static_cast<size_t>(members_.size());
  const Clock::duration limit = kNcclCollectiveLimit + std::chrono::milliseconds(bytes / kLeastBytesPerMillisecond);
  const bool may_connect = bytes > largest_[kind];
  const auto begin = Clock::now();
  SetStage(NcclStage::kInCall);
  {
    const LibraryCallMark in_call(events_);
    communicator_->Begin({kind, what.op, what.root, std::move(call.input), output});
  }
  AwaitIdle(
      limit, [&] { events_.ask(turn); },
      [&] {
        const auto allowed =
            may_connect && AllHaveBegun() ? std::max<Clock::duration>(limit, kNcclConnectLimit) : limit;
        if (Clock::now() < begin + allowed) return Status();
        return DescribeLate(turn, DescribeCall(call.name, call.id, what), allowed);
      });
  largest_[kind] = std::max(largest_[kind], bytes);
  return to_host ? device_->CopyToHost(output) : output;
}

void NcclLane::AwaitIdle(Clock::duration limit, const std::function<void()>& ask, const std::function<Status()>& late) {
  const auto begin = Clock::now();
  auto pause = kFirstLook;
  bool asked = ask == nullptr;
  const auto is_idle = [this] {
    const LibraryCallMark in_call(events_);
    return communicator_->IsIdle();
  };
  while (!is_idle()) {
    if (communicator_->is_on_device()) SetStage(NcclStage::kOnDevice);
    const auto now = Clock::now();
    if (now >= begin + limit) late().ThrowIfError();
    if (!asked && now >= begin + limit / 2) {
      asked = true;
      ask();
    }
    PassReady();
    MutexLock lock(shared_->mu);
    if (shared_->stopped) throw CancelledError("[collective] the group has ended");
    if (!shared_->woken) shared_->changed.WaitUntil(shared_->mu, now + pause);
    shared_->woken = false;
    pause = std::min(2 * pause, kLongestLook);
  }
}

Status NcclLane::DescribeLate(int64_t turn, const std::string& what, Clock::duration limit) const {
  std::map<int, NcclStage> answers;
  {
    MutexLock lock(shared_->mu);
    answers = shared_->answers;
    answers[rank_] = shared_->stage;
  }
  std::vector<std::string> behind;
  for (int rank = 0; rank < members_.size(); ++rank) {
    const auto found = answers.find(rank);
    if (found == answers.end()) {
      behind.push_back(StrCat(members_.DescribeRank(rank), " does not answer"));
    } else if (found->second == NcclStage::kNotBegun) {
      behind.push_back(StrCat(members_.DescribeRank(rank), " has not begun it"));
    } else if (found->second == NcclStage::kInCall) {
      behind.push_back(StrCat(members_.DescribeRank(rank), " is in a call of NCCL"));
    }
  }
  const std::string who =
      behind.empty() ? "it is on all devices: one of them, or the network, stands still" : StrJoin(behind, ", ");
  return Status(Code::kDeadlineExceeded, StrCat("[collective] expected that NCCL ends ", what, ", its turn ", turn,
                                                ", within ", InSeconds(limit), " s; it does not: ", who));
}

bool NcclLane::AllHaveBegun() const {
  MutexLock lock(shared_->mu);
  const auto has_begun = [](const auto& answer) { return answer.second >= NcclStage::kInCall; };
  return static_cast<int>(shared_->answers.size()) == members_.size() - 1 &&
         std::all_of(shared_->answers.begin(), shared_->answers.end(), has_begun);
}

void NcclLane::SetStage(NcclStage stage) {
  MutexLock lock(shared_->mu);
  shared_->stage = stage;
}

void NcclLane::Abort() {
  if (communicator_ == nullptr) return;
  communicator_->Abort();
  communicator_.reset();
}

}  // namespace cohort::collective
