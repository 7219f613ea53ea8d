#include "cohort/collective/gloo_calls.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "cohort/collective/group_core.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

using Clock = std::chrono::steady_clock;

// Of data messages: a member has come, and the tensor is the collective's name; rank 0 gives a turn, whose number it
// is.
constexpr int32_t kCome = 0;
constexpr int32_t kTurn = 1;

// The largest tensor of each lane, but the last, which has no limit.
constexpr size_t kLaneLimits[] = {64 * 1024};
constexpr size_t kLanes = std::size(kLaneLimits) + 1;

// Rank 0 knows best who is missing: the others give it so much time to say so.
constexpr std::chrono::milliseconds kLeaderSpeaksFirst{1000};
// Within which the loss of a member is known, by the silence limit.
constexpr std::chrono::seconds kCauseIsKnown{5};

size_t LaneOf(const Signature& what) {
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

// What rank 0 knows of one execution of a collective that somebody has begun. Thread-safe.
class GlooCalls::Gathering final : public Pending {
 public:
  Gathering(const RunHost& host, std::string name, const CallId& id, int first, const Signature& signature)
      : host_(host),
        name_(std::move(name)),
        id_(id),
        first_(first),
        signature_(signature),
        come_(static_cast<size_t>(host.size())),
        schedules_(static_cast<size_t>(host.size())) {}

  // Whether all have come now.
  bool Come(int rank, const Signature& theirs, uint64_t schedule, Status* different) {
    MutexLock lock(mu_);
    if (!(theirs == signature_)) {
      *different = Disagreement(Describe(), host_.DescribeRank(first_), host_.DescribeRank(rank), theirs);
      return false;
    }
    come_[static_cast<size_t>(rank)] = true;
    schedules_[static_cast<size_t>(rank)] = schedule;
    complete_ = std::find(come_.begin(), come_.end(), false) == come_.end();
    return complete_;
  }
  const Signature& signature() const { return signature_; }
  // By rank, when all have come; else empty.
  std::vector<uint64_t> Schedules() const {
    MutexLock lock(mu_);
    return complete_ ? schedules_ : std::vector<uint64_t>();
  }
  // Why one who has not come never will, or one that has will not tell its schedule; ok where all may.
  Status WhyNever() const {
    MutexLock lock(mu_);
    for (size_t rank = 0; rank < come_.size(); ++rank) {
      Status gone = come_[rank] && !complete_ ? Status() : host_.WhyGone(static_cast<int>(rank));
      if (!gone.ok()) return gone;
    }
    return {};
  }

  std::string Describe() const override { return DescribeCall(name_, id_, signature_); }
  std::string DescribeWait() const override {
    MutexLock lock(mu_);
    if (complete_) return "";  // what it waits for then takes no time of its own
    std::vector<std::string> missing;
    for (size_t rank = 0; rank < come_.size(); ++rank) {
      if (!come_[rank]) missing.push_back(host_.DescribeRank(static_cast<int>(rank)));
    }
    return StrCat("waits for ", StrJoin(missing, ", "));
  }

 private:
  const RunHost& host_;
  const std::string name_;  // as the first one calls it
  const CallId id_;
  const int first_;
  const Signature signature_;
  mutable Mutex mu_;
  std::vector<bool> come_ GUARDED_BY(mu_);
  std::vector<uint64_t> schedules_ GUARDED_BY(mu_);
  bool complete_ GUARDED_BY(mu_) = false;
};

GlooCalls::GlooCalls(GroupCore& core, const std::string& host) : core_(core), turns_(kLanes) {
  std::vector<int> ranks;
  for (const int rank : core.local_ranks()) ranks.insert(ranks.end(), kLanes, rank);
  for (auto& mesh : MakeGlooMeshes(host, ranks, core.size())) {
    lanes_.push_back(std::make_unique<GlooLane>(
        core, std::move(mesh), [this](const std::shared_ptr<GlooCall>& call, const Status& status, Tensor result) {
          Finish(call, status, std::move(result));
        }));
  }
}

GlooCalls::~GlooCalls() = default;

std::vector<std::string> GlooCalls::Endpoints() const {
  std::vector<std::string> endpoints;
  endpoints.reserve(lanes_.size());
  for (const auto& lane : lanes_) endpoints.push_back(lane->mesh().Endpoint());
  return endpoints;
}

size_t GlooCalls::NumEndpoints(size_t members) { return members * kLanes; }

bool GlooCalls::leads() const { return core_.process_of(0) == core_.own_process(); }

void GlooCalls::Connect(const std::vector<std::vector<std::string>>& endpoints) {
  std::vector<std::vector<std::string>> by_lane(kLanes, std::vector<std::string>(static_cast<size_t>(core_.size())));
  std::vector<size_t> taken(endpoints.size());  // of each process
  for (size_t rank = 0; rank < by_lane[0].size(); ++rank) {
    const auto process = static_cast<size_t>(core_.process_of(static_cast<int>(rank)));
    for (auto& lane : by_lane) lane[rank] = endpoints.at(process).at(taken[process]++);
  }
  // All at once: each waits for others, of this process too.
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
  OneLess();
}

void GlooCalls::Begin(int rank, const CallId& id, PlanRun::Job job) {
  const auto call = std::make_shared<GlooCall>(core_, rank, id, std::move(job));
  Status failed;
  {
    MutexLock lock(mu_);
    failed = failed_;
    if (failed.ok()) calls_[{rank, id}] = call;
  }
  if (!failed.ok()) return call->Fail(failed);
  core_.Watch(call, kLeaderSpeaksFirst);
  if (leads()) {
    Gather(rank, call->name(), id, call->signature(), call->schedule());
  } else {
    core_.Post(rank, 0, id, kCome, call->signature(), call->schedule(), TensorOf(call->name()));
    const Status gone = core_.WhyGone(0);
    if (!gone.ok() && call->waits()) core_.Fail(gone);
  }
}

void GlooCalls::OnData(const DataMessage& data, const Tensor& tensor) {
  if (data.sequence == kCome && data.to == 0 && tensor.dtype() == DType::kUint8) {
    const std::string name(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
    return Gather(data.from, name, data.call, data.signature, data.schedule);
  }
  if (data.sequence == kTurn && data.from == 0 && tensor.dtype() == DType::kInt64 && tensor.num_elements() == 1) {
    return GiveTurn(data.to, data.call, data.signature, *tensor.data<int64_t>());
  }
  throw DataLossError(StrCat("[collective] expected that a member has come, or a turn; got message ", data.sequence,
                             " from rank ", data.from, " to rank ", data.to));
}

void GlooCalls::Gather(int from, const std::string& name, const CallId& id, const Signature& signature,
                       uint64_t schedule) {
  std::shared_ptr<Gathering> gathering;
  bool first = false;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    std::shared_ptr<Gathering>& place = gatherings_[id];
    first = place == nullptr;
    if (first) place = std::make_shared<Gathering>(core_, name, id, from, signature);
    gathering = place;
  }
  if (first) core_.Watch(gathering);
  Status different;
  if (gathering->Come(from, signature, schedule, &different)) return Proceed(id, *gathering);
  if (different.ok()) different = gathering->WhyNever();
  if (!different.ok()) core_.Fail(different);
}

void GlooCalls::Proceed(const CallId& id, const Gathering& gathering) {
  const std::vector<uint64_t> schedules = gathering.Schedules();
  bool agreed = !schedules.empty();
  for (size_t rank = 1; rank < schedules.size(); ++rank) {
    agreed = core_.Agree(0, schedules[0], static_cast<int>(rank), schedules[rank]) && agreed;
  }
  if (!agreed) return;
  const Signature& signature = gathering.signature();
  int64_t turn = 0;
  {
    MutexLock lock(mu_);
    if (gatherings_.erase(id) == 0) return;  // it has had its turn
    turn = turns_[LaneOf(signature)]++;
  }
  // Those elsewhere first: a call of ours may end, and the group with it, before they have heard.
  for (int rank = 0; rank < core_.size(); ++rank) {
    if (core_.process_of(rank) == core_.own_process()) continue;
    core_.Post(0, rank, id, kTurn, signature, 0, Tensor::Scalar(turn));
  }
  for (const int rank : core_.local_ranks()) GiveTurn(rank, id, signature, turn);
}

void GlooCalls::CheckSchedules() {
  std::map<CallId, std::shared_ptr<Gathering>> gatherings;
  {
    MutexLock lock(mu_);
    gatherings = gatherings_;
  }
  for (const auto& [id, gathering] : gatherings) Proceed(id, *gathering);
}

void GlooCalls::GiveTurn(int rank, const CallId& id, const Signature& signature, int64_t turn) {
  std::shared_ptr<GlooCall> call;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    const auto found = calls_.find({rank, id});
    if (found != calls_.end() && found->second->signature() == signature && found->second->GiveTurn()) {
      call = found->second;
      ++under_way_;
    }
  }
  if (call == nullptr) {
    return core_.Fail(Status(Code::kDataLoss, StrCat("[collective] rank 0 gives a turn to ", core_.DescribeRank(rank),
                                                     ", which has not begun instance ", id.instance, ", round ",
                                                     id.round, ", ", signature.ToString())));
  }
  const auto& ranks = core_.local_ranks();
  const auto local = static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  lanes_[local * kLanes + LaneOf(signature)]->Add(turn, std::move(call));
}

void GlooCalls::CheckPeers() {
  std::vector<std::shared_ptr<Gathering>> gatherings;
  bool waits = false;
  bool fails = false;
  {
    MutexLock lock(mu_);
    for (const auto& [id, gathering] : gatherings_) gatherings.push_back(gathering);
    waits = std::any_of(calls_.begin(), calls_.end(), [](const auto& entry) { return entry.second->waits(); });
    fails = explained_ > 0;
  }
  Status why;
  for (const auto& gathering : gatherings) {
    if (why.ok()) why = gathering->WhyNever();
  }
  if (why.ok() && waits) why = core_.WhyGone(0);
  for (int rank = 0; fails && why.ok() && rank < core_.size(); ++rank) why = core_.WhyGone(rank);
  if (!why.ok()) core_.Fail(why);
}

void GlooCalls::AddUnderWay(std::vector<std::shared_ptr<Pending>>& all) {
  MutexLock lock(mu_);
  for (const auto& [id, gathering] : gatherings_) all.push_back(gathering);  // names those who are missing
  for (const auto& [key, call] : calls_) all.push_back(call);
}

Status GlooCalls::Explain(const Status& seen) {
  // A peer that ends closes Gloo's connections as well as ours, and one that fails says why; either may come first.
  if (seen.code() == Code::kUnavailable) {
    {
      MutexLock lock(mu_);
      ++explained_;
    }
    CheckPeers();
    const auto until = Clock::now() + kCauseIsKnown;
    MutexLock lock(mu_);
    while (failed_.ok() && changed_.WaitUntil(mu_, until)) {
    }
    --explained_;
  }
  core_.Fail(seen);
  return core_.status();
}

void GlooCalls::Finish(const std::shared_ptr<GlooCall>& call, const Status& status, Tensor result) {
  const Status why = status.ok() ? Status() : Explain(status);
  {
    MutexLock lock(mu_);
    calls_.erase({call->rank(), call->id()});
  }
  OneLess();
  call->End(why, std::move(result));
}

void GlooCalls::OneLess() {
  std::vector<int> left;
  {
    MutexLock lock(mu_);
    if (--under_way_ == 0) left.swap(left_);
  }
  for (const int process : left) core_.SendFarewell(process);
}

bool GlooCalls::idle() const {
  MutexLock lock(mu_);
  return under_way_ == 0 && calls_.empty();
}

void GlooCalls::OnLeft(int process) {
  {
    MutexLock lock(mu_);
    if (under_way_ > 0) {
      left_.push_back(process);
      return;
    }
  }
  core_.SendFarewell(process);
}

void GlooCalls::Stop(const Status& why) {
  std::map<Key, std::shared_ptr<GlooCall>> calls;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    failed_ = why;
    calls = calls_;
    gatherings_.clear();
  }
  changed_.NotifyAll();
  for (const auto& lane : lanes_) lane->Stop();
  for (const auto& [key, call] : calls) call->Fail(why);  // one that runs ends by itself, soon
}

bool GlooCalls::IsOwnThread() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->IsOwnThread(); });
}

void GlooCalls::Join() {
  for (const auto& lane : lanes_) lane->Join();
}

}  // namespace cohort::collective
