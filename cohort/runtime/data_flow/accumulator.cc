#include "cohort/runtime/data_flow/accumulator.h"

#include <algorithm>

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {

std::string AccumulatorResource::Describe() const { return StrCat(kind(), " '", spec_.name, "'"); }

void AccumulatorResource::CheckIsAs(const AccumulatorSpec& wanted) const {
  const auto text = [](const AccumulatorSpec& spec) {
    return StrCat(spec.dtype, spec.shape, spec.mean ? ", MEAN" : ", SUM");
  };
  if (text(spec_) == text(wanted)) return;
  throw InvalidArgumentError(StrCat("[accumulator] Shared ", Describe(), " is of ", text(spec_), " but ", text(wanted),
                                    " was requested; give one of the two another shared_name"));
}

Status AccumulatorResource::TryAdd(int64_t local_step, const AccumulatedGradient& gradient) {
  if (!removed_.ok()) return removed_;
  if (local_step < global_step_) {
    ++stale_;
    return {};
  }
  try {
    Check(gradient);
    Add(gradient, count_ == 0);
    ++count_;
  } catch (...) {
    return Status::FromCurrentException();
  }
  return {};
}

void AccumulatorResource::Apply(PendingKernel kernel, int64_t local_step, const AccumulatedGradient& gradient) {
  std::deque<Ended> ended;
  {
    MutexLock lock(mu_);
    const Status status = TryAdd(local_step, gradient);
    ended.push_back({std::move(kernel), status, {}});
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void AccumulatorResource::Take(PendingKernel kernel, int64_t required) {
  if (required < 1) {
    return kernel.End(Status(
        Code::kInvalidArgument,
        StrCat("[accumulator] Argument num_required must be positive, but was ", required, " for ", Describe())));
  }
  std::deque<Ended> ended;
  {
    MutexLock lock(mu_);
    const uint64_t id = next_id_++;
    waiting_.push_back({id, std::move(kernel), required});
    Serve(&ended);
    const auto cancel = [self = shared_from_this(), id](const Status& why) { self->Cancel(id, why); };
    if (auto cancelled = WatchLast<Waiting>(waiting_, id, cancel)) {
      const Status why = cancelled->kernel.WhyCancelled();
      ended.push_back({std::move(cancelled->kernel), why, {}});
    }
  }
  EndAll(std::move(ended));
}

void AccumulatorResource::Serve(std::deque<Ended>* ended) {
  while (!waiting_.empty() && (!removed_.ok() || count_ >= waiting_.front().required)) {
    Status status = removed_;
    AccumulatedGradient result;
    try {
      if (status.ok()) {
        result = Remove(count_);
        count_ = 0;
        ++global_step_;
      }
    } catch (...) {
      status = Status::FromCurrentException();
    }
    ended->push_back({std::move(waiting_.front().kernel), status, std::move(result)});
    waiting_.pop_front();
  }
}

void AccumulatorResource::Cancel(uint64_t id, const Status& why) {
  std::deque<Ended> ended;
  {
    MutexLock lock(mu_);
    auto cancelled = TakeOut(waiting_, id);
    if (!cancelled) return;
    ended.push_back({std::move(cancelled->kernel), why, {}});
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void AccumulatorResource::SetGlobalStep(int64_t step) {
  MutexLock lock(mu_);
  if (step < global_step_) {
    LogWarning("accumulator", "the global step of ", Describe(), " becomes smaller: ", global_step_, " -> ", step);
  }
  global_step_ = step;
}

int64_t AccumulatorResource::num_accumulated() const {
  MutexLock lock(mu_);
  return count_;
}

int64_t AccumulatorResource::num_stale() const {
  MutexLock lock(mu_);
  return stale_;
}

void AccumulatorResource::OnRemoved(const std::string& container) {
  std::deque<Ended> ended;
  {
    MutexLock lock(mu_);
    removed_ = Status(Code::kAborted, StrCat("[accumulator] ", Describe(), " was removed: the container '", container,
                                             "' was cleared; start a new session and initialize it"));
    Serve(&ended);
  }
  EndAll(std::move(ended));
}

void AccumulatorResource::EndAll(std::deque<Ended> ended) {
  const std::shared_ptr<AccumulatorResource> alive =
      shared_from_this();  // a step that goes on may remove the accumulator
  for (Ended& one : ended) {
    one.kernel.End(one.status, [&one](KernelContext& ctx) {
      if (ctx.num_outputs() == 0) return;
      if (!one.result.indices.defined()) return ctx.SetOutput(0, std::move(one.result.values));
      ctx.SetOutput(0, std::move(one.result.indices));
      ctx.SetOutput(1, std::move(one.result.values));
      ctx.SetOutput(2, std::move(one.result.dense_shape));
    });
  }
}

}  // namespace cohort
