// NcclEngine. A call goes through these steps: Begin gives it to the lane of its member, which waits until its input is
// complete; OnReady gives it to the TurnOrder, or to the plans; the TurnOrder gives it its turn; the lane runs it.
#include "cohort/collective/nccl/nccl_engine.h"

#include <algorithm>
#include <chrono>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"

namespace cohort::collective {
namespace {

// The sequence numbers of messages. Smaller ones belong to plans. The tensor of a question is the turn; that of an
// answer is the turn and the stage.
constexpr int32_t kFirstSequence = 1 << 30;
constexpr int32_t kQuestion = kFirstSequence + TurnOrder::kSequences;
constexpr int32_t kAnswer = kQuestion + 1;

// The lanes of the order. Only those that the library runs need turns one after another.
constexpr size_t kByLibrary = 0;
constexpr size_t kByPlan = 1;

CollectiveLibrary* LibraryOf(const MemberList& members) {
  const Backend* const backend = BackendRegistry::Global().Find(members.device_type());
  return backend == nullptr ? nullptr : backend->collective_library();
}

bool AnyBackendHasLibrary() {
  const BackendRegistry& backends = BackendRegistry::Global();
  const std::vector<std::string> types = backends.types();
  return std::any_of(types.begin(), types.end(),
                     [&](const std::string& type) { return backends.Find(type)->collective_library() != nullptr; });
}

// Logs `why` unless this process has logged something here before.
void SayOnce(std::atomic<bool>& said, const std::string& why) {
  if (!said.exchange(true)) LogWarning("collective", why);
}

}  // namespace

EngineFactory NcclEngineFactory() {
  return {
      AnyBackendHasLibrary(),
      [](const GroupOptions& options, const MemberList& members) {
        if (members.has_one_process()) return false;
        const bool automatic = options.algorithm == Algorithm::kAuto && LibraryOf(members) != nullptr;
        return options.algorithm == Algorithm::kNccl || automatic;
      },
      [](EngineHost& host, const std::string&) -> std::unique_ptr<CollectiveEngine> {
        CollectiveLibrary* const library = LibraryOf(host.members());
        if (library == nullptr) {
          throw UnimplementedError(StrCat("[collective] expected members on devices of one type that NCCL serves; got ",
                                          StrJoin(host.members().devices(), ", "), ": use AUTO"));
        }
        return std::make_unique<NcclEngine>(host, *library);
      },
      false};
}

NcclEngine::NcclEngine(EngineHost& host, CollectiveLibrary& library)
    : host_(host),
      library_(library),
      plans_(host),
      order_(host, {"NCCL", kFirstSequence, 2,
                    [this](const CallSignature& what) { return RunsByLibrary(what) ? kByLibrary : kByPlan; },
                    [this](size_t lane, int64_t turn, std::shared_ptr<TurnCall> call) {
                      if (lane == kByPlan) return OnTurnOfPlan(call);
                      const int rank = call->rank();
                      LaneOf(rank).Add(turn, std::move(call));
                    }}) {
  for (const int rank : host.members().local_ranks()) {
    std::shared_ptr<Device> device = host.device(rank);
    if (device == nullptr) {
      throw InvalidArgumentError(StrCat("[collective] expected that this task has the device of ",
                                        host.members().DescribeRank(rank), "; it has no such device"));
    }
    lanes_.push_back(std::make_unique<NcclLane>(host.members(), rank, std::move(device), EventsOf(rank)));
  }
}

NcclLaneEvents NcclEngine::EventsOf(int rank) {
  return {[this](CollectiveCall&& call) { OnReady(std::move(call)); },
          [this](const std::shared_ptr<TurnCall>& call, const Status& status, Tensor result) {
            order_.Finish(call, status, std::move(result));
          },
          [this, rank](const Status& seen) { return Explain(rank, seen); },
          [this, rank](int64_t turn) { Ask(rank, turn); },
          [this, rank](std::chrono::steady_clock::duration limit) { guard_.Entered(rank, limit); },
          [this, rank] { guard_.Left(rank); },
          [this] { guard_.Ended(); }};
}

std::vector<std::string> NcclEngine::Endpoints() const {
  MutexLock lock(endpoints_mu_);
  if (!endpoints_.empty()) return endpoints_;
  for (const int rank : host_.members().local_ranks()) {
    NcclEndpoint endpoint;
    try {
      library_.Open();
      const std::shared_ptr<Device> device = host_.device(rank);
      if (device == nullptr) throw UnavailableError("its server has stopped");
      endpoint.device = library_.PhysicalName(*device);
      if (rank == 0) endpoint.id = library_.NewId();
    } catch (const Error& error) {
      endpoint.missing = error.what();
    }
    endpoints_.push_back(EncodeEndpoint(endpoint));
  }
  return endpoints_;
}

size_t NcclEngine::NumEndpointsOf(int process) const {
  return static_cast<size_t>(host_.members().NumMembersOf(process));
}

void NcclEngine::Decide(const std::vector<std::vector<std::string>>& endpoints) {
  const MemberList& members = host_.members();
  std::vector<NcclEndpoint> all;
  std::vector<size_t> taken(endpoints.size());  // by process
  for (int rank = 0; rank < members.size(); ++rank) {
    const auto process = static_cast<size_t>(members.process_of(rank));
    all.push_back(DecodeEndpoint(endpoints.at(process).at(taken[process]++)));
  }
  choice_ = Choose(all, members.locations());
  uses_library_ = choice_.uses_library;
  if (choice_.missing_at >= 0) {
    const std::string why = StrCat("[collective] NCCL cannot be used at ", members.DescribeRank(choice_.missing_at),
                                   ": ", all[static_cast<size_t>(choice_.missing_at)].missing);
    if (host_.options().algorithm == Algorithm::kNccl)
      throw FailedPreconditionError(StrCat(why, "; AUTO does not need it"));
    static std::atomic<bool> said{false};
    SayOnce(said, StrCat(why, ". Collectives between processes go through host memory."));
  } else if (choice_.rank >= 0) {
    static std::atomic<bool> said{false};
    SayOnce(said, StrCat(members.DescribeRank(choice_.same_as), " and ", members.DescribeRank(choice_.rank),
                         " share a physical device (", all[static_cast<size_t>(choice_.rank)].device,
                         "), which NCCL refuses. Collectives between their processes go through host memory."));
  } else {
    LogInfo("collective", "group ", host_.options().key, ", generation ", host_.options().generation, ": ",
            library_.Describe(), " connects ", members.size(), " members");
  }
}

void NcclEngine::Connect(const std::vector<std::vector<std::string>>& endpoints) {
  try {
    Decide(endpoints);
  } catch (...) {
    host_.Fail(Status::FromCurrentException());
    throw;
  }
  {
    MutexLock lock(mu_);
    if (!failed_) {
      guard_.Start(static_cast<int>(lanes_.size()));
      for (const auto& lane : lanes_) lane->Start(choice_.uses_library ? &library_ : nullptr, choice_.id);
    }
  }
  host_.status().ThrowIfError();
  Status first;
  int rank = -1;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Status connected = lanes_[i]->AwaitConnected();
    if (!first.ok() || connected.ok()) continue;
    first = connected;
    rank = host_.members().local_ranks()[i];
  }
  if (!first.ok()) Explain(rank, first).ThrowIfError();
  order_.OnConnected();
}

Algorithm NcclEngine::AlgorithmOf(DType dtype, int64_t bytes) const {
  return uses_library_ ? Algorithm::kNccl : PlanFor(dtype, static_cast<size_t>(bytes));
}

Algorithm NcclEngine::PlanFor(DType dtype, size_t bytes) const {
  return ChooseAllReduce(dtype, static_cast<int64_t>(bytes), host_.members().locations());
}

bool NcclEngine::RunsByLibrary(const CallSignature& signature) const {
  if (!uses_library_) return false;
  return signature.kind == CallKind::kBarrier ||
         library_.Has(LibraryCollectiveOf(signature.kind), signature.op, signature.dtype);
}

void NcclEngine::Begin(CollectiveCall&& call) {
  const bool by_library = RunsByLibrary(call.signature);
  if (by_library && call.signature.kind == CallKind::kBarrier) return order_.Begin(std::move(call));
  if (by_library || call.in_device_memory()) return LaneOf(call.rank).Prepare(std::move(call));
  BeginOnHost(std::move(call));
}

void NcclEngine::OnReady(CollectiveCall&& call) {
  if (RunsByLibrary(call.signature)) return order_.Begin(std::move(call));
  try {
    MoveToHost(call);
    BeginOnHost(std::move(call));
  } catch (...) {
    EndCall(call, host_.members(), Status::FromCurrentException(), {});
  }
}

void NcclEngine::MoveToHost(CollectiveCall& call) {
  const std::shared_ptr<Device> device = host_.device(call.rank);
  if (device == nullptr) throw CancelledError("[collective] the server of the device has stopped");
  call.input = device->CopyToHost(call.input);
  call.done = [device, done = std::move(call.done)](const Status& status, Tensor value) {
    Status copied = status;
    try {
      if (status.ok() && value.defined()) value = device->CopyFromHostAsync(value);
    } catch (...) {
      copied = Status::FromCurrentException();
      value.Reset();
    }
    done(copied, std::move(value));
  };
}

void NcclEngine::BeginOnHost(CollectiveCall&& call) {
  if (uses_library_) {
    order_.Begin(std::move(call));
  } else {
    BeginPlan(std::move(call));
  }
}

void NcclEngine::BeginPlan(CollectiveCall&& call) {
  if (call.signature.kind == CallKind::kAllReduce && call.signature.algorithm == Algorithm::kNccl) {
    call.signature.algorithm = PlanFor(call.signature.dtype, call.input.bytes());
  }
  plans_.Begin(std::move(call));
}

void NcclEngine::OnTurnOfPlan(const std::shared_ptr<TurnCall>& call) {
  CollectiveCall taken;
  if (!order_.Take(call, &taken)) return;
  taken.done = [this, done = std::move(taken.done)](const Status& status, Tensor value) {
    order_.OnTakenEnded();
    done(status, std::move(value));
  };
  try {
    BeginPlan(std::move(taken));
  } catch (...) {
    EndCall(taken, host_.members(), Status::FromCurrentException(), {});
  }
}

void NcclEngine::Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) {
  if (data.sequence < kFirstSequence) return plans_.Deliver(data, std::move(tensor), may_compute_inline);
  if (data.sequence < kQuestion) return order_.Deliver(data, tensor);
  const bool is_answer = data.sequence == kAnswer;
  if (data.sequence > kAnswer || tensor.dtype() != DType::kInt64 || tensor.num_elements() != (is_answer ? 2 : 1)) {
    throw DataLossError(StrCat("[collective] expected a question or an answer; got message ", data.sequence,
                               " from rank ", data.from, " to rank ", data.to));
  }
  const auto* numbers = std::as_const(tensor).data<int64_t>();
  if (is_answer) return LaneOf(data.to).OnAnswer(data.from, numbers[0], static_cast<NcclStage>(numbers[1]));
  const auto stage = static_cast<int64_t>(LaneOf(data.to).StageOf(numbers[0]));
  host_.Post({{}, data.call, data.to, data.from, kAnswer, data.signature, 0},
             Tensor::Vector<int64_t>({numbers[0], stage}));
}

void NcclEngine::Ask(int rank, int64_t turn) {
  for (int other = 0; other < host_.members().size(); ++other) {
    if (other == rank) continue;
    host_.Post({{}, {}, rank, other, kQuestion, {}, 0}, Tensor::Vector<int64_t>({turn}));
  }
}

void NcclEngine::OnStuck(int rank, std::chrono::steady_clock::duration limit) {
  host_.Fail(Status(
      Code::kDeadlineExceeded,
      StrCat("[collective] ", host_.members().DescribeRank(rank), " is in a call of ", library_.Describe(),
             " that has not returned for ", std::chrono::duration_cast<std::chrono::seconds>(limit).count(), " s")));
}

void NcclEngine::OnPeerGone() {
  plans_.OnPeerGone();
  order_.OnPeerGone();
  cause_.OnPeerGone();
}

void NcclEngine::OnPeerLeft(int process) { order_.OnPeerLeft(process); }

void NcclEngine::OnSchedulesAgreed() {
  plans_.OnSchedulesAgreed();
  order_.OnSchedulesAgreed();
}

void NcclEngine::AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) {
  plans_.AppendUnfinished(all);
  order_.AppendUnfinished(all);
}

Status NcclEngine::Explain(int rank, const Status& seen) {
  cause_.Await(seen);
  host_.Fail(Status(seen.code(), StrCat("[collective] ", host_.members().DescribeRank(rank), ": ", seen.message())));
  return host_.status();
}

void NcclEngine::Fail(const Status& why) {
  if (!order_.SetFailed(why)) return;
  {
    MutexLock lock(mu_);
    failed_ = true;
  }
  cause_.OnFailed();
  guard_.Arm(why.ToString());
  for (const auto& lane : lanes_) lane->Stop(why);
  plans_.Fail(why);
  order_.EndCalls();  // a call that runs is ended by its lane
}

bool NcclEngine::IsOwnThread() const {
  return guard_.IsOwnThread() ||
         std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->IsOwnThread(); });
}

void NcclEngine::Join() {
  for (const auto& lane : lanes_) lane->Join();
  guard_.Join();
}

}  // namespace cohort::collective
