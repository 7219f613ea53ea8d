#include "cohort/collective/meeting.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <utility>

#include "cohort/backends/cpu/kernels/combine.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

// What has to be done, in parts that any thread may take, and what each member gets.
struct Computation {
  std::vector<Tensor> results;  // by rank
  int64_t parts = 0;
  std::function<void(int64_t part)> run;
};

namespace {

// What one thread takes at a time: it stays in a core's cache from the first to the last operand.
constexpr int64_t kPartBytes = 128 * 1024;
// From here on (of all inputs together) other threads help: to wake one takes as long as so much work.
constexpr size_t kAlone = 1024 * 1024;

const char* At(const Tensor& tensor, int64_t element) {
  return static_cast<const char*>(tensor.raw_data()) + static_cast<size_t>(element) * DTypeSize(tensor.dtype());
}

char* At(Tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.raw_data()) + static_cast<size_t>(element) * DTypeSize(tensor.dtype());
}

// out[0, count) = inputs[0][begin, begin + count) op inputs[1][...] op ..., in this order. `out` may be the memory of
// inputs 0 or 1 there.
class Reduction {
 public:
  Reduction(ReduceOp op, DType dtype, std::vector<Tensor> inputs) : inputs_(std::move(inputs)) {
    const DType sums = cpu::AccumulatorOf(dtype);
    const size_t world = inputs_.size();
    const ReduceOp step = op == ReduceOp::kMean ? ReduceOp::kSum : op;
    for (size_t i = 1; i < world; ++i) {
      const bool last = i + 1 == world;
      combine_.push_back(cpu::Combiner(last ? op : step, dtype, i == 1 ? dtype : sums, dtype, last ? dtype : sums));
    }
    sum_bytes_ = sums == dtype || world < 3 ? 0 : DTypeSize(sums);
  }

  void Run(int64_t begin, int64_t count, char* out) const {
    std::vector<char> wide(static_cast<size_t>(count) * sum_bytes_);
    const void* left = At(inputs_[0], begin);
    for (size_t i = 0; i < combine_.size(); ++i) {
      char* to = i + 1 == combine_.size() || sum_bytes_ == 0 ? out : wide.data();
      combine_[i](left, At(inputs_[i + 1], begin), to, count, static_cast<int64_t>(inputs_.size()));
      left = to;
    }
    if (combine_.empty() && left != out)
      std::memcpy(out, left, static_cast<size_t>(count) * DTypeSize(inputs_[0].dtype()));
  }

 private:
  const std::vector<Tensor> inputs_;
  std::vector<cpu::CombineFn> combine_;
  size_t sum_bytes_ = 0;  // of an element of a sum that needs memory of its own
};

std::vector<Tensor> TakeInputs(std::vector<PlanRun::Job>& jobs) {
  std::vector<Tensor> inputs;
  inputs.reserve(jobs.size());
  for (PlanRun::Job& job : jobs) inputs.push_back(std::move(job.input));
  return inputs;
}

// Cuts [0, count) for `run(begin, size)`.
template <typename Run>
void Cut(Computation& computation, int64_t count, DType dtype, Run run) {
  const int64_t step = std::max<int64_t>(1, kPartBytes / static_cast<int64_t>(DTypeSize(dtype)));
  computation.parts = (count + step - 1) / step;
  computation.run = [run, count, step](int64_t part) mutable { run(part * step, std::min(step, count - part * step)); };
}

Computation AllReduce(std::vector<PlanRun::Job>& jobs) {
  const Signature& what = jobs[0].signature;
  Computation made;
  Tensor out;
  for (size_t i = 0; i < std::min<size_t>(2, jobs.size()) && !out.defined(); ++i) {
    if (jobs[i].input.OwnsBufferAlone()) out = jobs[i].input;
  }
  if (!out.defined()) out = Tensor(what.dtype, what.shape);
  made.results.assign(jobs.size(), out);
  Cut(made, out.num_elements(), what.dtype,
      [reduction = std::make_shared<Reduction>(what.op, what.dtype, TakeInputs(jobs)), out](
          int64_t begin, int64_t count) mutable { reduction->Run(begin, count, At(out, begin)); });
  return made;
}

Computation ReduceScatter(std::vector<PlanRun::Job>& jobs) {
  const Signature& what = jobs[0].signature;
  Computation made;
  for (const PlanRun::Job& job : jobs) made.results.emplace_back(what.dtype, job.output_shape);
  const int64_t share = made.results[0].num_elements();
  Cut(made, share, what.dtype,
      [reduction = std::make_shared<Reduction>(what.op, what.dtype, TakeInputs(jobs)), outs = made.results, share](
          int64_t begin, int64_t count) mutable {
        for (size_t rank = 0; rank < outs.size(); ++rank) {
          reduction->Run(static_cast<int64_t>(rank) * share + begin, count, At(outs[rank], begin));
        }
      });
  return made;
}

Computation AllGather(std::vector<PlanRun::Job>& jobs) {
  const Signature& what = jobs[0].signature;
  Computation made;
  Tensor out(what.dtype, jobs[0].output_shape);
  made.results.assign(jobs.size(), out);
  const int64_t each = what.shape.num_elements();
  Cut(made, each, what.dtype, [inputs = TakeInputs(jobs), out, each](int64_t begin, int64_t count) mutable {
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      std::memcpy(At(out, static_cast<int64_t>(rank) * each + begin), At(std::as_const(inputs[rank]), begin),
                  static_cast<size_t>(count) * DTypeSize(out.dtype()));
    }
  });
  return made;
}

Computation ComputationOf(std::vector<PlanRun::Job>& jobs) {
  switch (jobs[0].signature.kind) {
    case CallKind::kAllReduce: return AllReduce(jobs);
    case CallKind::kReduceScatter: return ReduceScatter(jobs);
    case CallKind::kAllGather: return AllGather(jobs);
    case CallKind::kBroadcast:
    case CallKind::kBarrier: break;
  }
  const bool has_value = jobs[0].signature.kind == CallKind::kBroadcast;
  const Tensor value = has_value ? jobs[static_cast<size_t>(jobs[0].signature.root)].input : Tensor();
  return {std::vector<Tensor>(jobs.size(), value), 0, nullptr};
}

}  // namespace

// The one that ends the last part ends the meeting.
struct Meeting::Work {
  std::shared_ptr<Meeting> meeting;
  std::vector<PlanRun::Job> jobs;
  Computation computation;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> left{0};
  Mutex mu;
  Status failed GUARDED_BY(mu);

  void Take() {
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
    computation.run = nullptr;  // and the inputs with it
    if (!status.ok()) meeting->host_.Fail(status);
    meeting->End(std::move(jobs), status, std::move(computation.results));
  }
};

Meeting::Meeting(RunHost& host, const CallId& call)
    : host_(host), call_(call), jobs_(static_cast<size_t>(host.size())) {}

std::string Meeting::DescribeLocked() const {
  const PlanRun::Job& first = jobs_[static_cast<size_t>(std::max(0, first_))];
  return DescribeCall(first.name, call_, first.signature);
}

std::string Meeting::Describe() const {
  MutexLock lock(mu_);
  return DescribeLocked();
}

std::string Meeting::DescribeWait() const {
  MutexLock lock(mu_);
  if (complete_ || failed_) return "";
  std::vector<std::string> missing;
  for (size_t rank = 0; rank < jobs_.size(); ++rank) {
    if (!jobs_[rank].done) missing.push_back(host_.DescribeRank(static_cast<int>(rank)));
  }
  return StrCat("waits for ", StrJoin(missing, ", "));
}

void Meeting::Come(int rank, PlanRun::Job job) {
  Status different;
  std::vector<PlanRun::Job> jobs;
  {
    MutexLock lock(mu_);
    if (first_ < 0) first_ = rank;
    const PlanRun::Job& first = jobs_[static_cast<size_t>(first_)];
    if (first.done && !(first.signature == job.signature)) {
      different = Disagreement(DescribeCall(job.name, call_, job.signature), host_.DescribeRank(rank),
                               host_.DescribeRank(first_), first.signature);
    }
    jobs_[static_cast<size_t>(rank)] = std::move(job);
    if (different.ok() && ++come_ == host_.size() && !failed_) {
      complete_ = true;
      jobs.swap(jobs_);
    }
  }
  if (!different.ok()) {
    host_.Fail(different);
    Fail(different);  // the group may be failing for another reason, of which this meeting has not heard
  } else if (!jobs.empty()) {
    Compute(std::move(jobs));
  }
}

void Meeting::Fail(const Status& why) {
  std::vector<PlanRun::Job> jobs;
  {
    MutexLock lock(mu_);
    if (complete_) return;
    failed_ = true;
    jobs.resize(jobs_.size());
    jobs.swap(jobs_);  // who comes later is told by who finds that the group has failed
  }
  End(std::move(jobs), why, {});
}

void Meeting::Compute(std::vector<PlanRun::Job> jobs) {
  const auto work = std::make_shared<Work>();
  size_t bytes = 0;
  for (const PlanRun::Job& job : jobs) bytes += job.input.defined() ? job.input.bytes() : 0;
  try {
    work->computation = ComputationOf(jobs);
  } catch (...) {
    const Status status = Status::FromCurrentException();
    host_.Fail(status);
    return End(std::move(jobs), status, {});
  }
  work->meeting = shared_from_this();
  work->jobs = std::move(jobs);
  const int64_t parts = work->computation.parts;
  work->left = parts;
  if (parts == 0) return work->End();
  for (int64_t helper = 1; bytes >= kAlone && helper < std::min<int64_t>(host_.size(), parts); ++helper) {
    host_.Schedule([work] { work->Take(); });
  }
  work->Take();
}

void Meeting::End(std::vector<PlanRun::Job> jobs, const Status& status, std::vector<Tensor> results) {
  for (PlanRun::Job& job : jobs) job.input.Reset();
  for (size_t rank = 0; rank < jobs.size(); ++rank) {
    PlanRun::Job& job = jobs[rank];
    if (!job.done) continue;
    if (status.ok()) {
      job.done(Status(), std::move(results[rank]));
    } else {
      job.done(
          Status(status.code(), StrCat("[collective] ", DescribeCall(job.name, call_, job.signature), " failed at ",
                                       host_.DescribeRank(static_cast<int>(rank)), ": ", status.message())),
          Tensor());
    }
  }
}

MeetingPlace::Found MeetingPlace::Find(const CallId& call, int rank, uint64_t schedule) {
  MutexLock lock(mu_);
  Open& open = open_[call];
  if (open.found.meeting == nullptr) open.found = {std::make_shared<Meeting>(host_, call), rank, schedule};
  Found found = open.found;
  if (++open.asked == host_.size()) open_.erase(call);
  return found;
}

void MeetingPlace::FailAll(const Status& why) {
  std::vector<std::shared_ptr<Meeting>> meetings;
  {
    MutexLock lock(mu_);
    for (const auto& [call, open] : open_) meetings.push_back(open.found.meeting);
  }
  for (const auto& meeting : meetings) meeting->Fail(why);
}

void MeetingPlace::AddUnderWay(std::vector<std::shared_ptr<Pending>>& all) {
  MutexLock lock(mu_);
  for (const auto& [call, open] : open_) all.push_back(open.found.meeting);
}

}  // namespace cohort::collective
