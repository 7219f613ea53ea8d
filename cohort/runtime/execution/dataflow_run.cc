// A step of a plan with kernels that wait. Nodes whose inputs are there stand in a queue (ready_). One thread at a time
// takes nodes from the queue (Drain). If the queue is empty, the thread leaves the step. A kernel that ends later
// (AsyncDone) puts its successors into the queue, and its thread continues with Drain if no other thread does. A node
// that updates variables may have to wait for the update gate (PassGate).
#include "cohort/runtime/execution/dataflow_run.h"

#include <cstring>
#include <utility>

#include "cohort/runtime/kernels/waiting_kernel.h"

namespace cohort {

DataflowRun::DataflowRun(const Plan& plan, ArenaPlanner& planner, RunPool<DataflowRun>& pool)
    : StepRun(plan, planner), pool_(pool), contexts_(static_cast<size_t>(plan.async_nodes)) {
  pending_.resize(plan.nodes.size());
  pending_kernels_.resize(contexts_.size());
  ready_.reserve(plan.nodes.size());
}

void DataflowRun::Begin(const StepInfo& step, StepMode mode, Done done) {
  BeginStep(step, mode);
  done_ = std::move(done);
  MutexLock lock(mu_);
  std::memcpy(pending_.data(), plan_.initial_pending.data(), pending_.size() * sizeof(int32_t));
  ready_.assign(plan_.sources.begin(), plan_.sources.end());
  ready_head_ = 0;
  waiting_ = 0;
  running_ = true;
  status_ = Status();
}

void DataflowRun::Start(const StepInfo& step, StepMode mode, Done done, StepThread thread) {
  Begin(step, mode, std::move(done));
  Drain(thread);
}

void DataflowRun::StartOnComputeThread(const StepInfo& step, StepMode mode, Done done) {
  Begin(step, mode, std::move(done));
  DrainOnComputeThread();
}

void DataflowRun::DrainOnComputeThread() {
  device_.compute_thread().Schedule([this] { Drain(StepThread::kCompute); });
}

void DataflowRun::Drain(StepThread thread) {
  const OneThreadScope one_thread(device_, thread != StepThread::kCompute);
  position_.TakeOver();
  for (;;) {
    int32_t index = -1;
    switch (NextTurn(&index)) {
      case Turn::kNode:
        if (!Visit(index, thread)) return;
        break;
      case Turn::kIdle:
        position_.Leave();
        // Before the thread leaves, what it has to send goes out; a value may come in meanwhile.
        Pause();
        if (LeaveIfIdle()) return;
        break;
      case Turn::kEnd:
        position_.Leave();
        Pause();
        return EndStep();
    }
  }
}

DataflowRun::Turn DataflowRun::NextTurn(int32_t* index) {
  MutexLock lock(mu_);
  if (!status_.ok()) SkipAfterFailure();
  if (ready_head_ < ready_.size()) {
    *index = ready_[ready_head_++];
    return Turn::kNode;
  }
  return waiting_ == 0 ? Turn::kEnd : Turn::kIdle;
}

bool DataflowRun::LeaveIfIdle() {
  MutexLock lock(mu_);
  if (ready_head_ < ready_.size() || waiting_ == 0) return false;
  running_ = false;
  return true;
}

bool DataflowRun::Visit(int32_t index, StepThread thread) {
  const PlanNode& node = plan_.nodes[static_cast<size_t>(index)];
  if (Cancelled(node)) return true;
  if (node.updates && !PassGate(index)) return true;
  if (node.async != nullptr) {
    StartAsync(index, thread);
    return true;
  }
  if (ShouldMove(node, thread)) {
    {
      MutexLock lock(mu_);
      --ready_head_;
    }
    position_.Leave();
    Pause();
    DrainOnComputeThread();
    return false;
  }
  if (RunNode(node, thread == StepThread::kCompute)) {
    MutexLock lock(mu_);
    PushSuccessors(node);
  }
  return true;
}

void DataflowRun::StartAsync(int32_t index, StepThread thread) {
  const PlanNode& node = plan_.nodes[static_cast<size_t>(index)];
  EndTurn();
  TraceStart(node);
  position_.Enter(static_cast<size_t>(index));
  KernelContext& context = contexts_[static_cast<size_t>(node.async_index)].emplace(ContextOf(node));
  if (node.on_host) context.set_allocator(HostAllocator());
  context.SetCallInfo(thread == StepThread::kOther ? StepMode::kNetwork : mode_, node.updates);
  {
    MutexLock lock(mu_);
    ++waiting_;
    pending_kernels_[static_cast<size_t>(node.async_index)] = true;
  }
  try {
    if (WasAddedBefore(node, context)) return AsyncDone(index, Status());
    node.async->ComputeAsync(context, [this, index](const Status& status) { AsyncDone(index, status); });
  } catch (...) {
    AsyncDone(index, Status::FromCurrentException());  // a kernel throws before it has kept `done`, or not at all
  }
}

void DataflowRun::AsyncDone(int32_t index, const Status& status) {
  const PlanNode& node = plan_.nodes[static_cast<size_t>(index)];
  if (status.ok()) {
    TraceEnd(node);
  } else {
    Fail(node, status);
    UndoAddition(node);
  }
  bool take_over = false;
  bool move = false;
  {
    MutexLock lock(mu_);
    if (status.ok()) {
      FinishNode(node);
      PushSuccessors(node);
    }
    --waiting_;
    ++ended_kernels_;
    pending_kernels_[static_cast<size_t>(node.async_index)] = false;
    if (!running_) {
      // A failed step is ended by the last one that was waited for.
      take_over = status_.ok() ? ready_head_ < ready_.size() || waiting_ == 0 : waiting_ == 0;
      running_ = take_over;
      move = take_over && mode_ == StepMode::kDevice;
    }
  }
  if (move) {
    DrainOnComputeThread();
  } else if (take_over) {
    Drain(StepThread::kOther);
  }
}

void DataflowRun::PushSuccessors(const PlanNode& node) {
  const int32_t* successors = plan_.successors.data() + node.successor_begin;
  for (int32_t i = 0; i < node.num_successors; ++i) {
    if (--pending_[static_cast<size_t>(successors[i])] == 0) ready_.push_back(successors[i]);
  }
}

void DataflowRun::SkipAfterFailure() {
  const bool inside = gate_.inside();
  while (ready_head_ < ready_.size() && !(inside && plan_.nodes[static_cast<size_t>(ready_[ready_head_])].updates)) {
    ++ready_head_;
  }
}

bool DataflowRun::PassGate(int32_t index) {
  {
    MutexLock lock(mu_);
    if (at_gate_.empty() && gate_.TryEnter()) return true;
    at_gate_.push_back(index);
    if (at_gate_.size() > 1) return false;  // the step waits there already
    ++waiting_;
    waits_at_gate_ = plan_.nodes[static_cast<size_t>(index)].node;
  }
  const auto opened = [this, index] { device_.compute_thread().Schedule([this, index] { OpenedGate(index); }); };
  if (gate_.EnterOrCall(opened)) opened();
  return false;
}

void DataflowRun::OpenedGate(int32_t index) {
  EnteredGate(plan_.nodes[static_cast<size_t>(index)]);
  {
    MutexLock lock(mu_);
    if (status_.ok()) ready_.insert(ready_.end(), at_gate_.begin(), at_gate_.end());
    at_gate_.clear();
    --waiting_;
    if (running_) return;  // the thread that runs the step finds them
    running_ = true;
  }
  Drain(StepThread::kCompute);
}

void DataflowRun::LookAtWaits(RunLook* look) {
  look->stamp += ended_kernels_ << 32;
  for (const PlanNode& node : plan_.nodes) {
    if (node.async == nullptr || !pending_kernels_[static_cast<size_t>(node.async_index)]) continue;
    const bool runs = !look->doing.empty() && look->doing.front().node == node.node;  // in ComputeAsync
    if (!runs) look->doing.push_back({node.node, WaitKindOf(*node.async), 0});
  }
}

void DataflowRun::EndStep() {
  EndsOnStream() ? AfterStream([this] { Finish(); }) : Finish();
}

void DataflowRun::Finish() {
  const Done done = std::exchange(done_, nullptr);
  const Status status = CloseStep();
  pool_.GiveBack(*this);
  done(status);  // may free the executor: nothing of it is touched after this
}

}  // namespace cohort
