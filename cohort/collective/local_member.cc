#include "cohort/collective/local_member.h"

#include <algorithm>

#include "cohort/backends/cpu/kernels/combine.h"
#include "cohort/collective/choice.h"
#include "cohort/collective/group_core.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// Throws InvalidArgumentError for what cannot be computed on or sent.
void CheckInput(const Signature& signature, const Tensor& input, int world) {
  if (signature.kind == CallKind::kBarrier) return;
  const bool reduces = signature.kind == CallKind::kAllReduce || signature.kind == CallKind::kReduceScatter;
  const bool fits = input.defined() && DTypeSize(input.dtype()) > 0 && input.space().is_host() &&
                    !(reduces && input.dtype() == DType::kBool);
  if (!fits) {
    throw InvalidArgumentError(StrCat("[collective] expected ", reduces ? "numbers" : "numbers or truth values",
                                      " in host memory; got ", input.defined() ? input.ToString(0) : "no tensor"));
  }
  if (signature.kind == CallKind::kBroadcast && (signature.root < 0 || signature.root >= world)) {
    throw InvalidArgumentError(StrCat("[collective] expected a root in [0,", world, "); got ", signature.root));
  }
  const Shape& shape = input.shape();
  if (signature.kind == CallKind::kReduceScatter && (shape.rank() < 1 || shape.dim(0) % world != 0)) {
    throw InvalidArgumentError(
        StrCat("[collective] expected rows that ", world, " members can share equally; got the shape ", shape));
  }
}

class GroupCommunicator final : public Communicator {
 public:
  GroupCommunicator(const std::shared_ptr<GroupCore>& core, size_t local)
      : core_(core), local_(local), rank_(core->member(local)->rank()), size_(core->size()) {}

  std::string Describe() const override { return StrCat("the communicator of rank ", rank_); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) override {
    Begin(id, {CallKind::kAllReduce, op, Algorithm::kAuto, 0, {}, {}}, std::move(input), std::move(done));
  }
  void BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) override {
    Begin(id, {CallKind::kBroadcast, {}, {}, root, {}, {}}, std::move(value), std::move(done));
  }
  void AllGatherAsync(const CollectiveId& id, Tensor input, Done done) override {
    Begin(id, {CallKind::kAllGather, {}, {}, 0, {}, {}}, std::move(input), std::move(done));
  }
  void ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) override {
    Begin(id, {CallKind::kReduceScatter, op, {}, 0, {}, {}}, std::move(input), std::move(done));
  }
  void BarrierAsync(const CollectiveId& id, Done done) override {
    Begin(id, {CallKind::kBarrier, {}, {}, 0, {}, {}}, Tensor(), std::move(done));
  }
  void Abort(const Status& why) override {
    if (const auto core = core_.lock()) {
      core->Fail(Status(why.code(), StrCat("[collective] ", core->DescribeRank(rank_), " gives up: ", why.message())));
    }
  }

  Status status() const override {
    const auto core = core_.lock();
    return core != nullptr ? core->status() : Status(Code::kFailedPrecondition, "[collective] the group is gone");
  }

 private:
  void Begin(const CollectiveId& id, Signature signature, Tensor input, Done done) {
    const auto core = core_.lock();
    if (core == nullptr) {
      return done(Status(Code::kFailedPrecondition, StrCat("[collective] the group of '", id.name, "' is gone")), {});
    }
    core->member(local_)->Begin(id, std::move(signature), std::move(input), std::move(done));
  }

  const std::weak_ptr<GroupCore> core_;
  const size_t local_;
  const int rank_;
  const int size_;
};

}  // namespace

std::shared_ptr<Communicator> MakeCommunicator(const std::shared_ptr<GroupCore>& core, size_t local) {
  return std::make_shared<GroupCommunicator>(core, local);
}

Plan LocalMember::MakePlan(const Signature& signature) const {
  const int world = core_.size();
  const auto size = static_cast<int64_t>(std::max<size_t>(1, DTypeSize(signature.dtype)));
  PlanOptions options;
  const int64_t bytes = core_.options().segment_bytes > 0 ? core_.options().segment_bytes : kSegmentBytes;
  options.segment = std::max<int64_t>(1, bytes / size);
  options.partials_in_scratch = cpu::AccumulatorOf(signature.dtype) != signature.dtype;
  const int64_t count = signature.kind == CallKind::kBarrier ? 0 : signature.shape.num_elements();
  switch (signature.kind) {
    case CallKind::kAllReduce:
      return PlanAllReduce(signature.algorithm, rank_, world, count, options, core_.locations());
    case CallKind::kBroadcast: return PlanBroadcast(rank_, world, signature.root, count, options);
    case CallKind::kAllGather:
      return PlanAllGather(rank_, std::vector<int64_t>(static_cast<size_t>(world), count), options);
    case CallKind::kReduceScatter: return PlanReduceScatter(rank_, world, count, options);
    case CallKind::kBarrier: break;
  }
  return PlanBarrier(rank_, world);
}

Shape LocalMember::OutputShape(const Signature& signature) const {
  Shape shape = signature.shape;
  if (signature.kind == CallKind::kAllGather) {
    if (shape.rank() == 0) shape = Shape{1};
    shape.set_dim(0, shape.dim(0) * core_.size());
  } else if (signature.kind == CallKind::kReduceScatter) {
    shape.set_dim(0, shape.dim(0) / core_.size());
  }
  return shape;
}

std::shared_ptr<PlanRun> LocalMember::FindOrMake(const CallId& call) {
  std::shared_ptr<PlanRun>& run = runs_[call];
  if (run == nullptr) run = std::make_shared<PlanRun>(core_, rank_, call);
  return run;
}

void LocalMember::Begin(const CollectiveId& id, Signature signature, Tensor input, Communicator::Done done) {
  PlanRun::Job job;
  std::shared_ptr<PlanRun> run;
  MeetingPlace::Found found;
  CallId call = {id.instance, 0};
  GlooCalls* const gloo = core_.gloo();
  const Algorithm wanted = core_.options().algorithm;
  const bool meets = core_.tasks().size() == 1 && (wanted == Algorithm::kAuto || wanted == Algorithm::kGloo);
  try {
    CheckInput(signature, input, core_.size());
    if (input.defined()) {
      signature.dtype = input.dtype();
      signature.shape = input.shape();
    }
    if (signature.kind == CallKind::kAllReduce) {
      const auto bytes = static_cast<int64_t>(input.bytes());
      const bool open = meets || wanted == Algorithm::kAuto;
      signature.algorithm = open ? ChooseAllReduce(input.dtype(), bytes, core_.locations()) : wanted;
    }
    core_.status().ThrowIfError();
    const auto schedule = std::static_pointer_cast<const Schedule>(id.schedule);
    const uint64_t fingerprint = schedule != nullptr ? schedule->fingerprint : 0;
    job = {id.name, signature, nullptr, std::move(input), OutputShape(signature), std::move(done), fingerprint};
    MutexLock lock(mu_);
    Instance& instance = instances_[id.instance];
    const bool planned = !meets && gloo == nullptr;
    if (planned && (instance.plan == nullptr || !(instance.signature == signature))) {
      instance.plan = std::make_shared<const Plan>(MakePlan(signature));
      instance.signature = signature;
    }
    if (schedule != nullptr && instance.schedule != schedule) core_.schedules().Know(rank_, schedule);
    instance.schedule = schedule;
    call.round = instance.rounds++;
    if (meets) found = core_.meetings().Find(call, rank_, fingerprint);
    if (planned) run = FindOrMake(call);
    job.plan = instance.plan;
  } catch (...) {
    const Status why = Status::FromCurrentException();
    const Communicator::Done& told = job.done ? job.done : done;
    return told(Status(why.code(), StrCat("[collective] '", id.name, "' (instance ", id.instance, ") at ",
                                          core_.DescribeRank(rank_), ": ", why.message())),
                Tensor());
  }
  if (gloo != nullptr) return gloo->Begin(rank_, call, std::move(job));
  if (meets) {
    core_.Watch(found.meeting);
    // Where schedules differ the group has failed. The meeting hears of it before it is complete.
    if (!core_.Agree(rank_, job.schedule, found.first, found.schedule)) found.meeting->Fail(core_.status());
    found.meeting->Come(rank_, std::move(job));
  } else {
    core_.Watch(run);
    run->Start(std::move(job));
  }
  // The group may have failed before the run was there to hear of it.
  const Status failed = core_.status();
  if (!failed.ok()) meets ? found.meeting->Fail(failed) : run->Fail(failed);
}

void LocalMember::Deliver(const DataMessage& data, Tensor tensor, bool here) {
  std::shared_ptr<PlanRun> run;
  Status different;
  {
    MutexLock lock(mu_);
    const auto instance = instances_.find(data.call.instance);
    const int64_t rounds = instance == instances_.end() ? 0 : instance->second.rounds;
    if (data.call.round >= rounds || runs_.count(data.call) > 0) {
      run = FindOrMake(data.call);
    } else if (data.call.round == rounds - 1 && !(instance->second.signature == data.signature)) {
      different = Status(Code::kInvalidArgument,
                         StrCat("[collective] ", core_.DescribeRank(data.from), " brings ", data.signature.ToString(),
                                " to instance ", data.call.instance, ", round ", data.call.round, ", which was ",
                                instance->second.signature.ToString(), " at ", core_.DescribeRank(rank_)));
    }
  }
  if (!different.ok()) return core_.Fail(different);
  if (run != nullptr)
    run->Deliver(data.from, data.sequence, data.signature, data.schedule, std::move(tensor),
                 here);  // else it has ended
}

void LocalMember::Retire(const CallId& call) {
  MutexLock lock(mu_);
  runs_.erase(call);
}

std::vector<std::shared_ptr<PlanRun>> LocalMember::Runs() {
  std::vector<std::shared_ptr<PlanRun>> runs;
  MutexLock lock(mu_);
  for (const auto& [call, run] : runs_) runs.push_back(run);
  return runs;
}

void LocalMember::AddUnderWay(std::vector<std::shared_ptr<Pending>>& all) {
  for (auto& run : Runs()) all.push_back(std::move(run));
}

void LocalMember::CheckSchedules() {
  for (const auto& run : Runs()) run->CheckSchedules();
}

void LocalMember::CheckPeers() {
  for (const auto& run : Runs()) run->CheckPeers();
}

void LocalMember::FailAll(const Status& why) {
  for (const auto& run : Runs()) run->Fail(why);
}

}  // namespace cohort::collective
