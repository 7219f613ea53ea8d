#include "cohort/collective/gloo_lane.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/backends/cpu/kernels/combine.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {
namespace {

constexpr int64_t kZeros = 4096;

// out[i] = in[i] + 0, of MEAN divided by `divisor`: for what Gloo's sums still need.
void AddZeros(ReduceOp op, DType dtype, const Tensor& in, Tensor& out, int64_t divisor) {
  static const std::vector<double> zeros(kZeros);  // of any dtype
  const cpu::CombineFn add = cpu::Combiner(op, dtype, in.dtype(), dtype, out.dtype());
  const auto* from = static_cast<const char*>(in.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  for (int64_t begin = 0; begin < in.num_elements(); begin += kZeros) {
    const auto first = static_cast<size_t>(begin);
    add(from + first * DTypeSize(in.dtype()), zeros.data(), to + first * DTypeSize(out.dtype()),
        std::min(kZeros, in.num_elements() - begin), divisor);
  }
}

Tensor AllReduceByGloo(GlooMesh& mesh, const Signature& what, Tensor input, int world, uint32_t tag) {
  const DType sums = cpu::AccumulatorOf(what.dtype);
  const ReduceOp step = what.op == ReduceOp::kMean ? ReduceOp::kSum : what.op;
  Tensor all;
  if (sums != what.dtype) {
    all = Tensor(sums, what.shape);
    AddZeros(ReduceOp::kSum, what.dtype, input, all, 1);
  } else {
    all = input.OwnsBufferAlone() ? std::move(input) : input.Clone();
  }
  const cpu::CombineFn combine = cpu::Combiner(step, sums, sums, sums, sums);
  mesh.AllReduce(
      all.raw_data(), static_cast<size_t>(all.num_elements()), DTypeSize(sums),
      [combine](void* out, const void* a, const void* b, size_t n) { combine(a, b, out, static_cast<int64_t>(n), 1); },
      tag);
  if (sums == what.dtype && what.op != ReduceOp::kMean) return all;
  Tensor out = sums == what.dtype ? all : Tensor(what.dtype, what.shape);
  AddZeros(what.op == ReduceOp::kMean ? ReduceOp::kMean : ReduceOp::kSum, what.dtype, all, out, world);
  return out;
}

}  // namespace

Tensor RunByGloo(GlooMesh& mesh, PlanRun::Job& job, int rank, int world, uint32_t tag) {
  const Signature& what = job.signature;
  if (what.kind == CallKind::kBarrier) return {};
  if (what.shape.num_elements() == 0) return Tensor(what.dtype, job.output_shape);
  switch (what.kind) {
    case CallKind::kAllReduce: return AllReduceByGloo(mesh, what, std::move(job.input), world, tag);
    case CallKind::kReduceScatter: {
      const Tensor all = AllReduceByGloo(mesh, what, std::move(job.input), world, tag);
      Tensor rows(what.dtype, job.output_shape);
      std::memcpy(rows.raw_data(), static_cast<const char*>(all.raw_data()) + static_cast<size_t>(rank) * rows.bytes(),
                  rows.bytes());
      return rows;
    }
    case CallKind::kBroadcast: {
      const bool keeps = what.root == rank || job.input.OwnsBufferAlone();
      Tensor value = keeps ? std::move(job.input) : Tensor(what.dtype, what.shape);
      mesh.Broadcast(value.raw_data(), value.bytes(), what.root, tag);
      return value;
    }
    case CallKind::kAllGather: {
      Tensor all(what.dtype, job.output_shape);
      mesh.AllGather(std::as_const(job.input).raw_data(), job.input.bytes(), all.raw_data(), tag);
      return all;
    }
    case CallKind::kBarrier: break;
  }
  return {};
}

bool GlooCall::GiveTurn() {
  MutexLock lock(mu_);
  if (stage_ != Stage::kBegun) return false;
  stage_ = Stage::kTurn;
  return true;
}

bool GlooCall::waits() const {
  MutexLock lock(mu_);
  return stage_ == Stage::kBegun;
}

bool GlooCall::Run(const GlooMesh& mesh, const std::function<void(PlanRun::Job&)>& work) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kEnded) return false;
    stage_ = Stage::kRuns;
    mesh_ = &mesh;
  }
  work(job_);
  MutexLock lock(mu_);
  mesh_ = nullptr;
  return true;
}

void GlooCall::Fail(const Status& why) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kRuns || stage_ == Stage::kEnded) return;
    stage_ = Stage::kEnded;
  }
  Tell(why, {});
}

void GlooCall::End(const Status& status, Tensor result) {
  {
    MutexLock lock(mu_);
    if (stage_ == Stage::kEnded) return;
    stage_ = Stage::kEnded;
  }
  Tell(status, std::move(result));
}

void GlooCall::Tell(const Status& status, Tensor result) {
  const Communicator::Done done = std::move(job_.done);
  job_.input.Reset();
  if (status.ok()) return done(Status(), std::move(result));
  result.Reset();
  done(Status(status.code(),
              StrCat("[collective] ", Describe(), " failed at ", host_.DescribeRank(rank_), ": ", status.message())),
       Tensor());
}

std::string GlooCall::DescribeWait() const {
  MutexLock lock(mu_);
  if (stage_ == Stage::kEnded) return "";
  if (stage_ == Stage::kBegun) return StrCat("waits for ", host_.DescribeRank(0), ", which says when all have come");
  const int peer = mesh_ == nullptr ? -1 : mesh_->waits_for();
  return peer < 0 ? "is in Gloo's hands" : StrCat("waits for ", host_.DescribeRank(peer), ", in Gloo's hands");
}

GlooLane::GlooLane(RunHost& host, std::unique_ptr<GlooMesh> mesh, Finish finish)
    : host_(host), mesh_(std::move(mesh)), finish_(std::move(finish)), thread_([this] { Loop(); }) {}

GlooLane::~GlooLane() {
  Stop();
  Join();
}

void GlooLane::Add(int64_t turn, std::shared_ptr<GlooCall> call) {
  MutexLock lock(mu_);
  turns_[turn] = std::move(call);
  changed_.NotifyAll();
}

void GlooLane::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  mesh_->Break();
}

void GlooLane::Join() {
  if (thread_.joinable()) thread_.join();
}

void GlooLane::Loop() {
  SetThreadName("cohort-gloo");
  BlockBrokenPipeSignal();
  for (;;) {
    std::shared_ptr<GlooCall> call;
    int64_t turn = 0;
    {
      MutexLock lock(mu_);
      while (!stopped_ && (turns_.empty() || turns_.begin()->first != next_)) changed_.Wait(mu_);  // Stop ends it
      if (stopped_) break;  // whoever stops it ends the calls
      call = std::move(turns_.begin()->second);
      turns_.erase(turns_.begin());
      turn = next_++;
    }
    Tensor result;
    Status status;
    const bool ran = call->Run(*mesh_, [&](PlanRun::Job& job) {
      try {
        result = RunByGloo(*mesh_, job, call->rank(), host_.size(), static_cast<uint32_t>(turn));
      } catch (...) {
        status = Status::FromCurrentException();
      }
    });
    if (ran) finish_(call, status, std::move(result));
  }
  mesh_->Close();
}

}  // namespace cohort::collective
