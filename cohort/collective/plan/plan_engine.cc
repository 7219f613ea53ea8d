#include "cohort/collective/plan/plan_engine.h"

#include <algorithm>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

PlanEngine::PlanEngine(EngineHost& host) : host_(host), reductions_(Reductions::Global().Find(kHostDeviceType)) {
  for (const int rank : host.members().local_ranks()) members_.push_back(std::make_unique<Member>(rank));
}

Algorithm PlanEngine::AlgorithmOf(DType dtype, int64_t bytes) const {
  const Algorithm wanted = host_.options().algorithm;
  return wanted == Algorithm::kAuto ? ChooseAllReduce(dtype, bytes, host_.members().locations()) : wanted;
}

Plan PlanEngine::MakePlan(int rank, const CallSignature& signature) const {
  const int world = host_.members().size();
  const auto size = static_cast<int64_t>(std::max<size_t>(1, DTypeSize(signature.dtype)));
  PlanOptions options;
  const int64_t bytes = host_.options().segment_bytes > 0 ? host_.options().segment_bytes : kSegmentBytes;
  options.segment = std::max<int64_t>(1, bytes / size);
  options.partials_in_scratch = reductions_.accumulator_of(signature.dtype) != signature.dtype;
  const int64_t count = signature.kind == CallKind::kBarrier ? 0 : signature.shape.num_elements();
  switch (signature.kind) {
    case CallKind::kAllReduce:
      return PlanAllReduce(signature.algorithm, rank, world, count, options, host_.members().locations());
    case CallKind::kBroadcast: return PlanBroadcast(rank, world, signature.root, count, options);
    case CallKind::kAllGather:
      return PlanAllGather(rank, std::vector<int64_t>(static_cast<size_t>(world), count), options);
    case CallKind::kReduceScatter: return PlanReduceScatter(rank, world, count, options);
    case CallKind::kBarrier: break;
  }
  return PlanBarrier(rank, world);
}

std::shared_ptr<PlanRun> PlanEngine::FindOrMakeRun(Member& member, const CallId& id) {
  std::shared_ptr<PlanRun>& run = member.runs[id];
  if (run == nullptr) {
    run = std::make_shared<PlanRun>(host_, reductions_, member.rank, id, [&member, id] {
      MutexLock lock(member.mu);
      member.runs.erase(id);
    });
  }
  return run;
}

void PlanEngine::Begin(CollectiveCall&& call) {
  Member& member = MemberOf(call.rank);
  std::shared_ptr<PlanRun> run;
  std::shared_ptr<const Plan> plan;
  {
    MutexLock lock(member.mu);
    Instance& instance = member.instances[call.id.instance];
    if (instance.plan == nullptr || !(instance.signature == call.signature)) {
      instance.plan = std::make_shared<const Plan>(MakePlan(call.rank, call.signature));
      instance.signature = call.signature;
    }
    run = FindOrMakeRun(member, call.id);
    instance.rounds = call.id.round + 1;
    plan = instance.plan;
  }
  host_.Watch(run);
  run->Start(std::move(call), std::move(plan));
  // The group may have failed before Fail could find the run.
  const Status failed = host_.status();
  if (!failed.ok()) run->Fail(failed);
}

void PlanEngine::Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) {
  Member& member = MemberOf(data.to);
  std::shared_ptr<PlanRun> run;
  Status different;
  {
    MutexLock lock(member.mu);
    const auto instance = member.instances.find(data.call.instance);
    const int64_t rounds = instance == member.instances.end() ? 0 : instance->second.rounds;
    if (data.call.round >= rounds || member.runs.count(data.call) > 0) {
      run = FindOrMakeRun(member, data.call);
    } else if (data.call.round == rounds - 1 && !(instance->second.signature == data.signature)) {
      different =
          Status(Code::kInvalidArgument,
                 StrCat("[collective] ", host_.members().DescribeRank(data.from), " brings ", data.signature.ToString(),
                        " to instance ", data.call.instance, ", round ", data.call.round, ", which was ",
                        instance->second.signature.ToString(), " at ", host_.members().DescribeRank(member.rank)));
    }
  }
  if (!different.ok()) return host_.Fail(different);
  if (run != nullptr) run->Deliver(data, std::move(tensor), may_compute_inline);  // else it has ended
}

std::vector<std::shared_ptr<PlanRun>> PlanEngine::Runs() {
  std::vector<std::shared_ptr<PlanRun>> all;
  for (const auto& member : members_) {
    MutexLock lock(member->mu);
    for (const auto& [id, run] : member->runs) all.push_back(run);
  }
  return all;
}

void PlanEngine::OnPeerGone() {
  for (const auto& run : Runs()) run->CheckPeers();
}

void PlanEngine::OnSchedulesAgreed() {
  for (const auto& run : Runs()) run->CheckSchedules();
}

void PlanEngine::AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) {
  for (auto& run : Runs()) all.push_back(std::move(run));
}

void PlanEngine::Fail(const Status& why) {
  for (const auto& run : Runs()) run->Fail(why);
}

}  // namespace cohort::collective
