#include "cohort/runtime/execution/sequential_run.h"

#include <utility>

namespace cohort {
namespace {

// In place of a node's index: the step waits for the update gate and is no longer this thread's.
constexpr size_t kParked = SIZE_MAX;

}  // namespace

Status SequentialRun::Run(const StepInfo& step) {
  BeginStep(step, StepMode::kInline);
  const size_t stopped = RunNodes(0, StepThread::kCaller);
  if (stopped < plan_.nodes.size()) {
    Mutex mu;
    CondVar changed;
    bool ended = false;
    // The compute thread must not wait for the gate: a step inside may need it.
    if (gate_.is_ahead()) EnterGate(plan_.nodes[stopped]);
    device_.compute_thread().Schedule([&, stopped] {
      RunNodes(stopped, StepThread::kCompute);
      MutexLock lock(mu);
      ended = true;
      changed.NotifyAll();
    });
    MutexLock lock(mu);
    while (!ended) changed.Wait(mu);  // ends: kernels of a synchronous plan wait for nobody
  }
  if (EndsOnStream()) {
    position_.Leave();
    WaitForStream();
  }
  Status status = CloseStep();
  pool_.GiveBack(*this);
  return status;
}

void SequentialRun::Begin(const StepInfo& step, StepMode mode, Done done) {
  BeginStep(step, mode);
  done_ = std::move(done);
}

void SequentialRun::Start(const StepInfo& step, StepMode mode, Done done, StepThread thread) {
  Begin(step, mode, std::move(done));
  RunToEnd(0, thread);
}

void SequentialRun::StartOnComputeThread(const StepInfo& step, StepMode mode, Done done) {
  Begin(step, mode, std::move(done));
  MoveToComputeThread(0);
}

size_t SequentialRun::RunNodes(size_t from, StepThread thread) {
  const bool on_compute_thread = thread == StepThread::kCompute;
  position_.TakeOver();
  const OneThreadScope one_thread(device_, !on_compute_thread);
  const std::vector<PlanNode>& nodes = plan_.nodes;
  for (size_t i = from; i < nodes.size(); ++i) {
    const PlanNode& node = nodes[i];
    if (Cancelled(node)) break;
    if (ShouldMove(node, thread)) {
      position_.Leave();
      Pause();
      return i;
    }
    if (node.updates && !PassGate(i)) return kParked;
    if (!RunNode(node, on_compute_thread)) break;
  }
  Pause();
  return nodes.size();
}

void SequentialRun::RunToEnd(size_t from, StepThread thread) {
  const size_t stopped = RunNodes(from, thread);
  if (stopped == kParked) return;
  if (stopped == plan_.nodes.size()) return EndStep();
  MoveToComputeThread(stopped);
}

void SequentialRun::MoveToComputeThread(size_t from) {
  device_.compute_thread().Schedule([this, from] { RunToEnd(from, StepThread::kCompute); });
}

bool SequentialRun::PassGate(size_t index) {
  if (gate_.TryEnter()) return true;
  position_.Leave();
  if (done_ == nullptr) {
    EnterGate(plan_.nodes[index]);
    return true;
  }
  Pause();
  waits_at_gate_ = plan_.nodes[index].node;
  const auto go_on = [this, index] {
    device_.compute_thread().Schedule([this, index] {
      EnteredGate(plan_.nodes[index]);
      RunToEnd(index, StepThread::kCompute);
    });
  };
  if (!gate_.EnterOrCall(go_on)) return false;
  waits_at_gate_ = nullptr;
  gate_.Entered();
  return true;
}

void SequentialRun::EnterGate(const PlanNode& node) {
  waits_at_gate_ = node.node;
  gate_.Enter();
  waits_at_gate_ = nullptr;
}

void SequentialRun::EndStep() {
  if (!EndsOnStream()) return Finish();
  position_.Leave();
  AfterStream([this] { Finish(); });
}

void SequentialRun::Finish() {
  const Done done = std::exchange(done_, nullptr);
  const Status status = CloseStep();
  pool_.GiveBack(*this);
  done(status);  // may free the executor: nothing of it is touched after this
}

}  // namespace cohort
