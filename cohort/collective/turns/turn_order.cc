// TurnOrder. A call goes through these steps: Begin stores it and sends its arrival to rank 0; rank 0 collects arrivals
// (RecordArrival) and gives the turn when all members have arrived and their schedules agree (GiveTurnIfAgreed); each
// member hands the call to its lane (TakeTurn); the lane runs it and calls Finish. A process that leaves gets its
// farewell when no call runs any more (DecrementRunning).
#include "cohort/collective/turns/turn_order.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// Rank 0 knows which members are missing. So it reports a time-out by this much earlier than the other members.
constexpr std::chrono::milliseconds kLeaderReportsFirst{1000};

// The tensor of an arrival is the collective's name. The tensor of a turn is its number.
Tensor TensorOf(const std::string& name) {
  Tensor text(DType::kUint8, Shape{static_cast<int64_t>(name.size())});
  if (!name.empty()) std::memcpy(text.raw_data(), name.data(), name.size());
  return text;
}

}  // namespace

TurnOrder::TurnOrder(EngineHost& host, TurnOptions options)
    : host_(host), options_(std::move(options)), turns_(options_.lanes) {}

void TurnOrder::Begin(CollectiveCall&& taken) {
  const auto call = std::make_shared<TurnCall>(host_.members(), options_.library, std::move(taken));
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
    host_.Post({{}, id, rank, 0, arrival_sequence(), call->signature(), call->schedule_fingerprint()},
               TensorOf(call->name()));
    const Status gone = host_.WhyGone(0);
    if (!gone.ok() && call->waits_for_turn()) host_.Fail(gone);
  }
}

void TurnOrder::Deliver(const DataMessage& data, const Tensor& tensor) {
  if (data.sequence == arrival_sequence() && data.to == 0 && tensor.dtype() == DType::kUint8) {
    const std::string name(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
    return RecordArrival(data.from, name, data.call, data.signature, data.schedule_fingerprint);
  }
  if (data.sequence == turn_sequence() && data.from == 0 && tensor.dtype() == DType::kInt64 &&
      tensor.num_elements() == 1) {
    return TakeTurn(data.to, data.call, data.signature, *tensor.data<int64_t>());
  }
  throw DataLossError(StrCat("[collective] expected that a member has come, or a turn; got message ", data.sequence,
                             " from rank ", data.from, " to rank ", data.to));
}

void TurnOrder::RecordArrival(int from, const std::string& name, const CallId& id, const CallSignature& signature,
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

void TurnOrder::GiveTurnIfAgreed(const CallId& id, const PendingArrivals& arrivals) {
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
    turn = turns_[options_.lane_of(signature)]++;
  }
  // Sends to other processes first. Otherwise a call of this process, and with it the group, could end before they get
  // the message.
  const MemberList& members = host_.members();
  for (int rank = 0; rank < members.size(); ++rank) {
    if (members.local_index(rank) >= 0) continue;
    host_.Post({{}, id, 0, rank, turn_sequence(), signature, 0}, Tensor::Scalar(turn));
  }
  for (const int rank : members.local_ranks()) TakeTurn(rank, id, signature, turn);
}

void TurnOrder::OnSchedulesAgreed() {
  std::map<CallId, std::shared_ptr<PendingArrivals>> all;
  {
    MutexLock lock(mu_);
    all = arrivals_;
  }
  for (const auto& [id, arrivals] : all) GiveTurnIfAgreed(id, *arrivals);
}

void TurnOrder::TakeTurn(int rank, const CallId& id, const CallSignature& signature, int64_t turn) {
  std::shared_ptr<TurnCall> call;
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
  options_.run(options_.lane_of(signature), turn, std::move(call));
}

void TurnOrder::AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) {
  MutexLock lock(mu_);
  for (const auto& [id, arrivals] : arrivals_) all.push_back(arrivals);  // names the missing members
  for (const auto& [key, call] : calls_) all.push_back(call);
}

void TurnOrder::OnPeerGone() {
  std::vector<std::shared_ptr<PendingArrivals>> pending;
  bool awaits_turn = false;
  {
    MutexLock lock(mu_);
    for (const auto& [id, arrivals] : arrivals_) pending.push_back(arrivals);
    awaits_turn =
        std::any_of(calls_.begin(), calls_.end(), [](const auto& entry) { return entry.second->waits_for_turn(); });
  }
  Status why;
  for (const auto& arrivals : pending) {
    if (why.ok()) why = arrivals->WhyNever();
  }
  if (why.ok() && awaits_turn) why = host_.WhyGone(0);
  if (!why.ok()) host_.Fail(why);
}

void TurnOrder::OnPeerLeft(int process) {
  {
    MutexLock lock(mu_);
    if (running_ > 0) {
      left_.push_back(process);
      return;
    }
  }
  host_.SendFarewell(process);
}

bool TurnOrder::NeedsFarewells() const {
  MutexLock lock(mu_);
  return running_ == 0 && calls_.empty();
}

void TurnOrder::Finish(const std::shared_ptr<TurnCall>& call, const Status& status, Tensor result) {
  {
    MutexLock lock(mu_);
    calls_.erase({call->rank(), call->id()});
  }
  DecrementRunning();
  call->End(status, std::move(result));
}

bool TurnOrder::Take(const std::shared_ptr<TurnCall>& call, CollectiveCall* taken) {
  {
    MutexLock lock(mu_);
    calls_.erase({call->rank(), call->id()});
  }
  return call->Take(taken);
}

void TurnOrder::DecrementRunning() {
  std::vector<int> left;
  {
    MutexLock lock(mu_);
    if (--running_ == 0) left.swap(left_);
  }
  for (const int process : left) host_.SendFarewell(process);
}

bool TurnOrder::SetFailed(const Status& why) {
  MutexLock lock(mu_);
  if (!failed_.ok()) return false;
  failed_ = why;
  arrivals_.clear();
  return true;
}

void TurnOrder::EndCalls() {
  std::map<Key, std::shared_ptr<TurnCall>> calls;
  Status why;
  {
    MutexLock lock(mu_);
    calls = calls_;
    why = failed_;
  }
  for (const auto& [key, call] : calls) call->Fail(why);  // a call that runs is ended by its lane
}

}  // namespace cohort::collective
