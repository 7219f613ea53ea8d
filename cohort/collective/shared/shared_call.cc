#include "cohort/collective/shared/shared_call.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/collective/shared/shared_computation.h"
#include "cohort/collective/shared/shared_device_work.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// If all inputs together have at least this size, other threads help. To wake a thread takes as long as this much work.
constexpr size_t kHelpFromBytes = 1024 * 1024;

}  // namespace

// A computation that several threads run. The thread that runs the last part ends the call.
struct SharedCall::Work {
  std::shared_ptr<SharedCall> call;
  std::vector<CollectiveCall> calls;
  SharedComputation computation;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> left{0};
  Mutex mu;
  Status failed COHORT_GUARDED_BY(mu);

  void RunParts() {
    for (;;) {
      const int64_t part = next.fetch_add(1);
      if (part >= computation.parts) return;
      try {
        computation.run(part);
      } catch (...) {
        MutexLock lock(mu);
        failed = Status::FromCurrentException();
      }
      if (left.fetch_sub(1) == 1) End();
    }
  }

  void End() {
    Status status;
    {
      MutexLock lock(mu);
      status = failed;
    }
    computation.run = nullptr;  // releases the inputs
    if (!status.ok()) call->host_.Fail(status);
    call->End(std::move(calls), status, std::move(computation.results));
  }
};

SharedCall::SharedCall(EngineHost& host, const ReductionTable& reductions, const CallId& id)
    : host_(host), reductions_(reductions), id_(id), calls_(static_cast<size_t>(host.members().size())) {}

std::string SharedCall::Describe() const {
  MutexLock lock(mu_);
  return DescribeCall(first_name_, id_, first_signature_);
}

std::string SharedCall::DescribeWait() const {
  std::vector<std::string> missing;
  for (const int rank : AwaitedRanks()) missing.push_back(host_.members().DescribeRank(rank));
  return missing.empty() ? "" : StrCat("waits for ", StrJoin(missing, ", "));
}

std::string SharedCall::name() const {
  MutexLock lock(mu_);
  return first_name_;
}

std::optional<uint64_t> SharedCall::Stamp() const {
  MutexLock lock(mu_);
  return static_cast<uint64_t>(arrived_);
}

std::vector<int> SharedCall::AwaitedRanks() const {
  std::vector<int> missing;
  MutexLock lock(mu_);
  if (complete_ || failed_) return missing;
  for (size_t rank = 0; rank < calls_.size(); ++rank) {
    if (!calls_[rank].done) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

void SharedCall::Arrive(CollectiveCall call) {
  Status different;
  std::vector<CollectiveCall> calls;
  const int rank = call.rank;
  {
    MutexLock lock(mu_);
    if (first_ < 0) {
      first_ = rank;
      first_name_ = call.name;
      first_signature_ = call.signature;
    }
    if (!(first_signature_ == call.signature)) {
      different = SignatureMismatch(DescribeCall(call.name, id_, call.signature), host_.members().DescribeRank(rank),
                                    host_.members().DescribeRank(first_), first_signature_);
    }
    calls_[static_cast<size_t>(rank)] = std::move(call);
    if (different.ok() && ++arrived_ == host_.members().size() && !failed_) {
      complete_ = true;
      calls.swap(calls_);
    }
  }
  if (!different.ok()) {
    host_.Fail(different);
    Fail(different);  // the group may be failing for another reason that has not reached this call
  } else if (!calls.empty()) {
    Compute(std::move(calls));
  }
}

void SharedCall::Fail(const Status& why) {
  std::vector<CollectiveCall> calls;
  {
    MutexLock lock(mu_);
    if (complete_) return;
    failed_ = true;
    calls.resize(calls_.size());
    calls.swap(calls_);  // a member that arrives later is ended by the next Fail
  }
  End(std::move(calls), why, {});
}

void SharedCall::Compute(std::vector<CollectiveCall> calls) {
  const auto work = std::make_shared<Work>();
  size_t bytes = 0;
  for (const CollectiveCall& call : calls) bytes += call.input.defined() ? call.input.bytes() : 0;
  std::vector<Tensor> on_devices;
  try {
    if (AreOnDevices(calls)) {
      on_devices = RunOnDevices(calls);
    } else {
      work->computation = MakeSharedComputation(calls, reductions_);
    }
  } catch (...) {
    const Status status = Status::FromCurrentException();
    host_.Fail(status);
    return End(std::move(calls), status, {});
  }
  if (!on_devices.empty()) return End(std::move(calls), Status(), std::move(on_devices));
  work->call = shared_from_this();
  work->calls = std::move(calls);
  const int64_t parts = work->computation.parts;
  work->left = parts;
  if (parts == 0) return work->End();
  for (int64_t helper = 1; bytes >= kHelpFromBytes && helper < std::min<int64_t>(host_.members().size(), parts);
       ++helper) {
    host_.RunOnWorker([work] { work->RunParts(); });
  }
  work->RunParts();
}

void SharedCall::End(std::vector<CollectiveCall> calls, const Status& status, std::vector<Tensor> results) {
  for (CollectiveCall& call : calls) {
    call.input.Reset();
    call.output.Reset();
  }
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    if (!calls[rank].done) continue;
    EndCall(calls[rank], host_.members(), status, status.ok() ? std::move(results[rank]) : Tensor());
  }
}

}  // namespace cohort::collective
