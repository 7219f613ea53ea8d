// StepRun: the base of SequentialRun and DataflowRun, which run a step of a plan. It has the step's values and its
// memory, and runs single kernels. RunPool: owns the runs of a plan.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/execution/closure_updates.h"
#include "cohort/runtime/execution/gate_pass.h"
#include "cohort/runtime/execution/run_position.h"
#include "cohort/runtime/execution/step_trace.h"
#include "cohort/runtime/execution/update_recorder.h"
#include "cohort/runtime/plan/arena.h"
#include "cohort/runtime/plan/plan.h"
#include "cohort/runtime/wait_kind.h"

namespace cohort {

// The kind of thread that runs the kernels of a step: the device's compute thread (kCompute), the thread that started
// the step (kCaller), or a thread with no time for long work, such as a network thread (kOther).
enum class StepThread { kCompute, kCaller, kOther };

// What a run does at a moment. The nodes belong to the run's plan.
struct RunLook {
  struct Doing {
    const Node* node;
    WaitKind wait = WaitKind::kWork;  // if the node waits
    int thread = 0;                   // the thread that runs the node, or 0 if the node waits
  };
  int64_t step = 0;
  uint64_t stamp = 0;  // changes whenever a node starts or ends
  std::vector<Doing> doing;
};

// Runs one step at a time. A RunPool owns it and lends it to a step. Only one thread at a time may call its methods; a
// step may move from thread to thread. Fail, FinishNode and EnteredGate are exceptions: several threads may call them
// at the same time.
class StepRun {
 public:
  using Done = std::function<void(const Status&)>;

  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  // Returns what the run does now, or nullopt if it runs no step. Thread-safe.
  std::optional<RunLook> Look() COHORT_EXCLUDES(mu_);

 protected:
  StepRun(const Plan& plan, ArenaPlanner& planner);
  virtual ~StepRun();

  // Prepares the run for a step. `step` must be valid until CloseStep.
  void BeginStep(const StepInfo& step, StepMode mode);
  // Returns whether `thread` should pass the step to the compute thread before this node, because the inputs of the
  // node are large. Returns false if the compute thread would not be faster: on a device with streams, if `thread` is
  // the compute thread, or if it is the caller's thread and the device uses one thread for each kernel.
  bool ShouldMove(const PlanNode& node, StepThread thread) const;
  // Runs a node that does not wait, and then calls FinishNode. If the kernel throws, makes the step fail and returns
  // false.
  bool RunNode(const PlanNode& node, bool on_compute_thread);
  // If the step is traced: the node starts, or has ended and its outputs are set. (FinishNode may release them.)
  void TraceStart(const PlanNode& node) {
    if (trace_ != nullptr) [[unlikely]]
      trace_->Start(node);
  }
  void TraceEnd(const PlanNode& node) {
    if (trace_ != nullptr) [[unlikely]]
      trace_->End(node, {slots_.data() + node.output_begin, static_cast<size_t>(node.num_outputs)});
  }
  // Counts down the uses of the node's inputs, and releases values that nothing needs any more.
  void FinishNode(const PlanNode& node);
  // If the update gate has an observer, gives it the updates that the step has made since the last EndTurn. The thread
  // of the step calls EndTurn before each kernel that may pass a value to another task, device or thread: a kernel that
  // waits, or one that sends.
  void EndTurn() {
    if (recorder_ != nullptr) [[unlikely]]
      recorder_->EndTurn();
  }
  // Ends the turn, and then sends the values that are kept for other tasks. A thread calls Pause whenever it stops
  // running kernels of the step: before it waits, before the step moves to another thread, and at the end of the step.
  void Pause() {
    EndTurn();
    if (plan_.has_sends) FlushSends();
  }
  // Returns whether an earlier attempt of the step's closure has made the node's addition (OpDef::AddsToResource), so
  // that its kernel must not run. If the kernel fails, the caller calls UndoAddition, which any thread may do.
  bool WasAddedBefore(const PlanNode& node, const KernelContext& context) {
    return step_->closure.valid() && BeginAddition(node, context);
  }
  void UndoAddition(const PlanNode& node) {
    if (step_->closure_updates != nullptr) step_->closure_updates->UndoAddition(*node.node, step_->caller);
  }
  KernelContext ContextOf(const PlanNode& node) {
    return {*node.node,  device_, *step_, slots_.data(), plan_.InputSlots(node), slots_.data() + node.output_begin,
            uses_.data()};
  }
  // Makes the step fail at `node`. Only the first failure counts: it becomes the step's outcome, cancels the step's
  // CancellationManager and aborts its rendezvous.
  void Fail(const PlanNode& node, const Status& status) COHORT_EXCLUDES(mu_);
  // Returns whether the step was cancelled and must stop before `node`. If so, makes the step fail. A step that is
  // inside the update gate does not stop, because an update set that has begun is applied as a whole.
  bool Cancelled(const PlanNode& node) COHORT_EXCLUDES(mu_);
  // Called when the gate has let in a step that waited at `node`. Leaves the gate again if the step was cancelled in
  // the meantime.
  void EnteredGate(const PlanNode& node);
  // Returns whether the step must wait for the device before CloseStep. It must if the device has streams, but not if
  // the step is a function's body: then the step that calls the function waits.
  bool EndsOnStream() const { return ends_on_stream_; }
  // Waits until the work that the step has enqueued has run. If this work has reported an error, or the device has
  // failed, the step fails with that error. Requires: EndsOnStream().
  void WaitForStream();
  // Does the same as WaitForStream, but does not wait on the calling thread. Calls `end` afterwards, on the compute
  // thread.
  void AfterStream(std::function<void()> end);
  // Ends the step: leaves the gate if the step is inside, and releases values and memory. Returns the step's outcome.
  Status CloseStep() COHORT_EXCLUDES(mu_);

  // Adds the kernels that wait to `look`, and changes its stamp if one has ended.
  virtual void LookAtWaits(RunLook*) COHORT_REQUIRES(mu_) {}

  const Plan& plan_;
  Device& device_;
  RunPosition position_;
  const StepInfo* step_ = nullptr;
  StepMode mode_ = StepMode::kInline;
  GatePass gate_;
  std::vector<Tensor> slots_;
  std::vector<int32_t> uses_;  // for each slot: the uses that are left
  ArenaPlanner& planner_;
  StepAllocator arena_;
  Allocator* memory_ = nullptr;  // for kernels that do not wait: `arena_` or the device's allocator
  uint32_t runs_ = 0;

  Mutex mu_;
  Status status_ COHORT_GUARDED_BY(mu_);
  // The node at which the step waits for the update gate, or null.
  std::atomic<const Node*> waits_at_gate_{nullptr};

 private:
  bool WantsArena(const StepInfo& step);
  // Calls Compute of the node's kernel, and checks that it has set its outputs. Throws what the kernel throws.
  void ComputeNode(const PlanNode& node, KernelContext& context);
  bool BeginAddition(const PlanNode& node, const KernelContext& context);
  // Runs the kernel of an update of a closure, unless another attempt of the closure has made the update.
  void ComputeOnce(const PlanNode& node, KernelContext& context);
  void ComputeUpdate(const PlanNode& node, KernelContext& context);
  // Runs the kernel of an update that is observed.
  void ComputeObserved(const PlanNode& node, KernelContext& context);
  // Makes the step fail with a status whose message is complete.
  void FailWith(const Status& status) COHORT_EXCLUDES(mu_);
  // Sends the kept values. The step fails if that fails.
  void FlushSends() COHORT_EXCLUDES(mu_);
  void TakeError(const Status& of_device);

  std::unique_ptr<UpdateRecorder> recorder_;         // null if no update of this run was ever observed
  std::unique_ptr<ClosureUpdates> closure_updates_;  // null if this run was never one of a closure

  std::unique_ptr<RunTrace> trace_;  // null if the step is not traced

  bool ends_on_stream_ = false;
  StepInfo own_step_;  // a copy of the step's info that points to error_ (on streams) or to closure_updates_
  StepError error_;
};

// The runs of one plan. The pool makes a new run if all its runs are in use, and owns them. Thread-safe. Requires: all
// runs are given back before the pool is destroyed.
template <typename Run>
class RunPool {
 public:
  RunPool(const Plan& plan, ArenaPlanner& planner) : plan_(plan), planner_(planner) {}

  // Returns a run that no step uses. The step that takes the run must give it back when it ends.
  Run& Take() {
    MutexLock lock(mu_);
    if (idle_.empty()) {
      runs_.push_back(std::make_unique<Run>(plan_, planner_, *this));
      return *runs_.back();
    }
    Run* run = idle_.back();
    idle_.pop_back();
    return *run;
  }
  void GiveBack(Run& run) {
    MutexLock lock(mu_);
    idle_.push_back(&run);
  }
  // Adds what the runs do now to `looks`.
  void LookAt(std::vector<RunLook>* looks) {
    MutexLock lock(mu_);
    for (const auto& run : runs_) {
      if (auto look = run->Look()) looks->push_back(std::move(*look));
    }
  }

 private:
  const Plan& plan_;
  ArenaPlanner& planner_;
  Mutex mu_;
  std::vector<std::unique_ptr<Run>> runs_ COHORT_GUARDED_BY(mu_);
  std::vector<Run*> idle_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
