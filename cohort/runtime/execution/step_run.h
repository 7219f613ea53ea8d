// StepRun: what the two ways to run a step of a plan share - its values, its memory, and how one kernel is run.
// RunPool: the runs of a plan.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/execution/gate_pass.h"
#include "cohort/runtime/execution/update_recorder.h"
#include "cohort/runtime/plan/arena.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// On which thread a step's kernels run: the device's compute thread, the caller's, or one that only brings something,
// such as a network thread, which has no time for long work.
enum class StepThread { kCompute, kCaller, kOther };

// One step at a time. A RunPool owns it and lends it to a step. Its functions are called by one thread after the other,
// or as the derived class says.
class StepRun {
 public:
  using Done = std::function<void(const Status&)>;

  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

 protected:
  StepRun(const Plan& plan, ArenaPlanner& planner);
  ~StepRun();

  void BeginStep(const StepInfo& step, StepMode mode);
  // Whether the node's inputs are so large that it should run on the compute thread and `thread` is another one.
  bool ShouldMove(const PlanNode& node, StepThread thread) const;
  // Runs a node that does not wait and gives up what it used. Returns false if the kernel threw; the step has failed
  // then.
  bool RunNode(const PlanNode& node, bool on_compute_thread);
  // Gives up what the node used.
  void FinishNode(const PlanNode& node);
  // The thread stops running kernels of the step, for now or for good: gives the updates that it has made to their
  // observer, and then sends what it has for others. Comes before each wait, move and end.
  void Pause() {
    if (recorder_ != nullptr) [[unlikely]]
      recorder_->EndTurn();
    if (plan_.has_sends) step_->rendezvous->Flush();
  }
  KernelContext ContextOf(const PlanNode& node) {
    return {*node.node,  device_, *step_, slots_.data(), plan_.InputSlots(node), slots_.data() + node.output_begin,
            uses_.data()};
  }
  // The first failure of a step is its outcome. It cancels the step's CancellationManager and aborts its rendezvous.
  void Fail(const PlanNode& node, const Status& status) COHORT_EXCLUDES(mu_);
  // Whether the step was cancelled and stops here; it has failed then. A set of updates that has begun is applied
  // whole, whatever becomes of its step.
  bool Cancelled(const PlanNode& node) COHORT_EXCLUDES(mu_);
  // The gate has let in a step that had to wait at `node`. It leaves again if it was cancelled meanwhile.
  void EnteredGate(const PlanNode& node);
  // Whether the step has to wait for the device before it is closed: it is on streams, and not within another step.
  bool EndsOnStream() const { return step_ == &own_step_; }
  // Waits for what the step has enqueued, and takes over the error that its work has reported.
  // Requires: EndsOnStream().
  void WaitForStream();
  // The same without blocking: calls `end` afterwards, on the compute thread.
  void AfterStream(std::function<void()> end);
  // Cleans up. Returns the step's outcome.
  Status CloseStep() COHORT_EXCLUDES(mu_);

  const Plan& plan_;
  Device& device_;
  const StepInfo* step_ = nullptr;
  StepMode mode_ = StepMode::kInline;
  GatePass gate_;
  std::vector<Tensor> slots_;
  std::vector<int32_t> uses_;  // of each slot, that are still to come
  ArenaPlanner& planner_;
  StepAllocator arena_;
  Allocator* memory_ = nullptr;  // of kernels that do not wait: `arena_`, or the device's
  uint32_t runs_ = 0;

  Mutex mu_;
  Status status_ COHORT_GUARDED_BY(mu_);

 private:
  bool WantsArena(const StepInfo& step);
  // Runs the kernel of an update that is observed.
  void ComputeObserved(const PlanNode& node, KernelContext& context);
  // Fails the step with a status that is complete.
  void FailWith(const Status& status) COHORT_EXCLUDES(mu_);
  void TakeError(const Status& of_device);

  std::unique_ptr<UpdateRecorder> recorder_;  // null if no update of this run was ever observed

  StepInfo own_step_;  // on streams: the step's, with the error below
  StepError error_;
};

// The runs of one plan: as many as steps have been under way at once. Owns them. Thread-safe.
template <typename Run>
class RunPool {
 public:
  RunPool(const Plan& plan, ArenaPlanner& planner) : plan_(plan), planner_(planner) {}

  // Lends a run to a step, until GiveBack.
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

 private:
  const Plan& plan_;
  ArenaPlanner& planner_;
  Mutex mu_;
  std::vector<std::unique_ptr<Run>> runs_ COHORT_GUARDED_BY(mu_);
  std::vector<Run*> idle_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
