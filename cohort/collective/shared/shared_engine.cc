#include "cohort/collective/shared/shared_engine.h"

#include "cohort/collective/shared/shared_device_work.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

EngineFactory SharedEngineFactory() {
  return {true,
          [](const GroupOptions& options, const MemberList& members) {
            return members.has_one_process() && !HasPlan(options.algorithm);
          },
          [](EngineHost& host, const std::string&) -> std::unique_ptr<CollectiveEngine> {
            return std::make_unique<SharedEngine>(host);
          }};
}

SharedEngine::SharedEngine(EngineHost& host) : host_(host), reductions_(Reductions::Global().Find(kHostDeviceType)) {}

SharedEngine::Open SharedEngine::FindOrOpen(const CollectiveCall& call) {
  MutexLock lock(mu_);
  Open& open = open_[call.id];
  if (open.call == nullptr) {
    open.call = std::make_shared<SharedCall>(host_, reductions_, call.id);
    open.first = call.rank;
    open.schedule_fingerprint = call.schedule_fingerprint;
  }
  Open found = open;
  if (++open.begun == host_.members().size()) open_.erase(call.id);
  return found;
}

void SharedEngine::Begin(CollectiveCall&& call) {
  PrepareOnDevice(call);
  const Open open = FindOrOpen(call);
  host_.Watch(open.call);
  // If the schedules differ, the group has failed. The call ends now, and not when all members have arrived.
  if (!host_.SchedulesAgree(call.rank, call.schedule_fingerprint, open.first, open.schedule_fingerprint)) {
    open.call->Fail(host_.status());
  }
  open.call->Arrive(std::move(call));
  // The group may have failed before Fail could find the call.
  const Status failed = host_.status();
  if (!failed.ok()) open.call->Fail(failed);
}

void SharedEngine::Deliver(const DataMessage& data, Tensor, bool) {
  throw DataLossError(StrCat("[collective] expected no message in a group of one process; got one from rank ",
                             data.from, " to rank ", data.to));
}

void SharedEngine::AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) {
  MutexLock lock(mu_);
  for (const auto& [id, open] : open_) all.push_back(open.call);
}

void SharedEngine::Fail(const Status& why) {
  std::vector<std::shared_ptr<SharedCall>> calls;
  {
    MutexLock lock(mu_);
    for (const auto& [id, open] : open_) calls.push_back(open.call);
  }
  for (const auto& call : calls) call->Fail(why);
}

}  // namespace cohort::collective
