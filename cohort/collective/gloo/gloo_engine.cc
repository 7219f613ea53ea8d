// GlooEngine. A call goes through these steps: Begin stores it and sends its arrival to rank 0; rank 0 collects
// arrivals (RecordArrival) and gives the turn when all members have arrived and their schedules agree
// (GiveTurnIfAgreed); each member hands the call to the lane of its size (TakeTurn); the lane runs it and calls Finish.
// Explain finds out why a connection of Gloo's broke. A process that leaves gets its farewell when no call runs any
// more (DecrementRunning).
#include "cohort/collective/gloo/gloo_engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// The sequence numbers of the engine's messages. The tensor of an arrival is the collective's name. The tensor of a
// turn is its number.
constexpr int32_t kArrival = 0;
constexpr int32_t kTurn = 1;

// The largest tensor of each lane in bytes. The last lane has no limit.
constexpr size_t kLaneLimits[] = {64 * 1024};
constexpr size_t kLanes = std::size(kLaneLimits) + 1;

// Rank 0 knows which members are missing. So it reports a time-out by this much earlier than the other members.
constexpr std::chrono::milliseconds kLeaderReportsFirst{1000};

size_t LaneOf(const CallSignature& what) {
  const size_t bytes =
      what.kind == CallKind::kBarrier ? 0 : static_cast<size_t>(what.shape.num_elements()) * DTypeSize(what.dtype);
  return static_cast<size_t>(std::lower_bound(std::begin(kLaneLimits), std::end(kLaneLimits), bytes) -
                             std::begin(kLaneLimits));
}

Tensor TensorOf(const std::string& name) {
  Tensor text(DType::kUint8, Shape{static_cast<int64_t>(name.size())});
  if (!name.empty()) std::memcpy(text.raw_data(), name.data(), name.size());
  return text;
}

}  // namespace

EngineFactory GlooEngineFactory() {
  return {true,
          [](const GroupOptions& options, const MemberList& members) {
            return options.algorithm == Algorithm::kGloo && !members.has_one_process();
          },
          [](EngineHost& host, const std::string& own_address) -> std::unique_ptr<CollectiveEngine> {
            return std::make_unique<GlooEngine>(host, own_address);
          },
          false};
}

GlooEngine::GlooEngine(EngineHost& host, const std::string& own_address) : host_(host), turns_(kLanes) {
  std::vector<int> ranks;
  for (const int rank : host.members().local_ranks()) ranks.insert(ranks.end(), kLanes, rank);
  for (auto& mesh : MakeGlooMeshes(own_address, ranks, host.members().size())) {
    lanes_.push_back(std::make_unique<GlooLane>(host.members().size(), std::move(mesh),
                                                [this](const std::shared_ptr<GlooCall>& call, const Status& status,
                                                       Tensor result) { Finish(call, status, std::move(result)); }));
  }
}

GlooEngine::~GlooEngine() = default;

std::vector<std::string> GlooEngine::Endpoints() const {
  std::vector<std::string> endpoints;
  endpoints.reserve(lanes_.size());
  for (const auto& lane : lanes_) endpoints.push_back(lane->mesh().Endpoint());
  return endpoints;
}

size_t GlooEngine::NumEndpointsOf(int process) const {
  return static_cast<size_t>(host_.members().NumMembersOf(process)) * kLanes;
}

void GlooEngine::Connect(const std::vector<std::vector<std::string>>& endpoints) {
  std::vector<std::vector<std::string>> by_lane(kLanes,
                                                std::vector<std::string>(static_cast<size_t>(host_.members().size())));
  std::vector<size_t> taken(endpoints.size());  // by process
  for (size_t rank = 0; rank < by_lane[0].size(); ++rank) {
    const auto process = static_cast<size_t>(host_.members().process_of(static_cast<int>(rank)));
    for (auto& lane : by_lane) lane[rank] = endpoints.at(process).at(taken[process]++);
  }
  // Connects all lanes at the same time, because each waits for others, some of them in this process.
  std::vector<Status> outcomes(lanes_.size());
  std::vector<std::thread> threads;
  const auto connect = [this, &by_lane, &outcomes](size_t i) {
    try {
      lanes_[i]->mesh().Connect(by_lane[i % kLanes]);
    } catch (...) {
      outcomes[i] = Status::FromCurrentException();
    }
  };
  Status no_thread;
  try {
    for (size_t i = 0; i < lanes_.size(); ++i) threads.emplace_back(connect, i);
  } catch (const std::system_error& error) {
    no_thread = Status(Code::kResourceExhausted, StrCat("[collective] expected a thread for each of ", lanes_.size(),
                                                        " meshes of Gloo; got ", threads.size(), ": ", error.what()));
    for (const auto& lane : lanes_) lane->mesh().Close();  // ends Connect
  }
  for (std::thread& thread : threads) thread.join();
  if (!no_thread.ok()) Explain(no_thread).ThrowIfError();
  for (const Status& outcome : outcomes) {
    if (!outcome.ok()) Explain(outcome).ThrowIfError();
  }
  DecrementRunning();
}

void GlooEngine::Begin(CollectiveCall&& taken) {
  const auto call = std::make_shared<GlooCall>(host_.members(), std::move(taken));
  const int rank = call->rank();
  const CallId id = call->id();
  Status failed;
  {
    MutexLock lock(mu_);
    failed = failed_;
    if (failed.ok()) calls_[{rank, id}] = call;
  }
  if (!failed.ok()) return call->Fail(failed);
  host_.Watch(call, kLeaderReportsFirst);
  if (is_leader()) {
    RecordArrival(rank, call->name(), id, call->signature(), call->schedule_fingerprint());
  } else {
    host_.Post({{}, id, rank, 0, kArrival, call->signature(), call->schedule_fingerprint()}, TensorOf(call->name()));
    const Status gone = host_.WhyGone(0);
    if (!gone.ok() && call->waits_for_turn()) host_.Fail(gone);
  }
}

void GlooEngine::Deliver(const DataMessage& data, Tensor tensor, bool) {
  if (data.sequence == kArrival && data.to == 0 && tensor.dtype() == DType::kUint8) {
    const std::string name(static_cast<const char*>(std::as_const(tensor).raw_data()), tensor.bytes());
    return RecordArrival(data.from, name, data.call, data.signature, data.schedule_fingerprint);
  }
  if (data.sequence == kTurn && data.from == 0 && tensor.dtype() == DType::kInt64 && tensor.num_elements() == 1) {
    return TakeTurn(data.to, data.call, data.signature, *std::as_const(tensor).data<int64_t>());
  }
  throw DataLossError(StrCat("[collective] expected that a member has come, or a turn; got message ", data.sequence,
                             " from rank ", data.from, " to rank ", data.to));
}

void GlooEngine::RecordArrival(int from, const std::string& name, const CallId& id, const CallSignature& signature,
                               uint64_t schedule_fingerprint) {
  std::shared_ptr<PendingArrivals> arrivals;
  bool first = false;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    std::shared_ptr<PendingArrivals>& place = arrivals_[id];
    first = place == nullptr;
    if (first) place = std::make_shared<PendingArrivals>(host_, name, id, from, signature);
    arrivals = place;
  }
  if (first) host_.Watch(arrivals);
  Status different;
  if (arrivals->Arrive(from, signature, schedule_fingerprint, &different)) return GiveTurnIfAgreed(id, *arrivals);
  if (different.ok()) different = arrivals->WhyNever();
  if (!different.ok()) host_.Fail(different);
}

void GlooEngine::GiveTurnIfAgreed(const CallId& id, const PendingArrivals& arrivals) {
  const std::vector<uint64_t> schedules = arrivals.ScheduleFingerprints();
  bool agreed = !schedules.empty();
  for (size_t rank = 1; rank < schedules.size(); ++rank) {
    agreed = host_.SchedulesAgree(0, schedules[0], static_cast<int>(rank), schedules[rank]) && agreed;
  }
  if (!agreed) return;
  const CallSignature& signature = arrivals.signature();
  int64_t turn = 0;
  {
    MutexLock lock(mu_);
    if (arrivals_.erase(id) == 0) return;  // another thread has given it its turn
    turn = turns_[LaneOf(signature)]++;
  }
  // Sends to other processes first. Otherwise a call of this process, and with it the group, could end before they get
  // the message.
  const MemberList& members = host_.members();
  for (int rank = 0; rank < members.size(); ++rank) {
    if (members.local_index(rank) >= 0) continue;
    host_.Post({{}, id, 0, rank, kTurn, signature, 0}, Tensor::Scalar(turn));
  }
  for (const int rank : members.local_ranks()) TakeTurn(rank, id, signature, turn);
}

void GlooEngine::OnSchedulesAgreed() {
  std::map<CallId, std::shared_ptr<PendingArrivals>> all;
  {
    MutexLock lock(mu_);
    all = arrivals_;
  }
  for (const auto& [id, arrivals] : all) GiveTurnIfAgreed(id, *arrivals);
}

void GlooEngine::TakeTurn(int rank, const CallId& id, const CallSignature& signature, int64_t turn) {
  std::shared_ptr<GlooCall> call;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    const auto found = calls_.find({rank, id});
    if (found != calls_.end() && found->second->signature() == signature && found->second->SetTurn()) {
      call = found->second;
      ++running_;
    }
  }
  if (call == nullptr) {
    return host_.Fail(Status(
        Code::kDataLoss,
        StrCat("[collective] rank 0 gives a turn to ", host_.members().DescribeRank(rank),
               ", which has not begun instance ", id.instance, ", round ", id.round, ", ", signature.ToString())));
  }
  const auto local = static_cast<size_t>(host_.members().local_index(rank));
  lanes_[local * kLanes + LaneOf(signature)]->Add(turn, std::move(call));
}

void GlooEngine::AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) {
  MutexLock lock(mu_);
  for (const auto& [id, arrivals] : arrivals_) all.push_back(arrivals);  // names the missing members
  for (const auto& [key, call] : calls_) all.push_back(call);
}

void GlooEngine::Finish(const std::shared_ptr<GlooCall>& call, const Status& status, Tensor result) {
  const Status why = status.ok() ? Status() : Explain(status);
  {
    MutexLock lock(mu_);
    calls_.erase({call->rank(), call->id()});
  }
  DecrementRunning();
  call->End(why, std::move(result));
}

void GlooEngine::DecrementRunning() {
  std::vector<int> left;
  {
    MutexLock lock(mu_);
    if (--running_ == 0) left.swap(left_);
  }
  for (const int process : left) host_.SendFarewell(process);
}

bool GlooEngine::IsOwnThread() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->IsOwnThread(); });
}

void GlooEngine::Join() {
  for (const auto& lane : lanes_) lane->Join();
}

}  // namespace cohort::collective
