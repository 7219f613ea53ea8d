// The parts that both kinds of runs share: begin a step, run one node, release values, fail, wait for the stream, close
// the step.
#include "cohort/runtime/execution/step_run.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Inputs of this many bytes make a kernel expensive: about 50 us of memory traffic.
constexpr size_t kExpensiveBytes = 256 * 1024;

}  // namespace

StepRun::StepRun(const Plan& plan, ArenaPlanner& planner)
    : plan_(plan),
      device_(plan.device),
      position_(plan.nodes.size()),
      gate_(plan.device.task().update_gate),
      slots_(plan.initial_uses.size()),
      uses_(plan.initial_uses.size()),
      planner_(planner),
      arena_(planner) {
  for (const auto& [slot, value] : plan.constants) slots_[static_cast<size_t>(slot)] = value;
}

StepRun::~StepRun() = default;

std::optional<RunLook> StepRun::Look() {
  MutexLock lock(mu_);
  const std::optional<RunPosition::Place> place = position_.Read();
  if (!place) return std::nullopt;
  RunLook look{place->step, place->number, {}};
  if (const Node* node = waits_at_gate_.load()) {
    look.doing.push_back({node, WaitKind::kGate, 0});
  } else if (place->node) {
    look.doing.push_back({plan_.nodes[*place->node].node, WaitKind::kWork, place->thread});
  }
  LookAtWaits(&look);
  return look;
}

void StepRun::BeginStep(const StepInfo& step, StepMode mode) {
  step_ = &step;
  ends_on_stream_ = plan_.on_streams && step.error == nullptr;
  const bool begins_closure = step.closure.valid() && step.closure_updates == nullptr;
  if (ends_on_stream_ || begins_closure) {
    own_step_ = step;
    step_ = &own_step_;
  }
  if (ends_on_stream_) {
    error_.Reset();
    own_step_.error = &error_;
  }
  if (begins_closure) {
    if (closure_updates_ == nullptr) {
      closure_updates_ = std::make_unique<ClosureUpdates>(device_.task().applied_updates);
    }
    closure_updates_->BeginStep(step.closure);
    own_step_.closure_updates = closure_updates_.get();
  }
  if (step.trace != nullptr) [[unlikely]]
    trace_ = std::make_unique<RunTrace>(plan_);
  mode_ = mode;
  gate_.Begin(plan_.update_nodes, step.in_update_gate);
  memory_ = WantsArena(step) ? static_cast<Allocator*>(&arena_) : &device_.allocator();
  if (!uses_.empty()) std::memcpy(uses_.data(), plan_.initial_uses.data(), uses_.size() * sizeof(int32_t));
  position_.Begin(step.step_id);
}

// A plan of small values alone does without; it is looked at again after 1, 2, 4, 8.. runs, or when a feed is large.
bool StepRun::WantsArena(const StepInfo& step) {
  if (!plan_.has_host_memory) return false;
  if (planner_.in_use() || std::has_single_bit(++runs_)) return true;
  for (const Tensor& arg : step.args) {
    if (arg.num_elements() >= static_cast<int64_t>(kArenaFromBytes / sizeof(float))) return true;
  }
  return false;
}

bool StepRun::ShouldMove(const PlanNode& node, StepThread thread) const {
  if (plan_.on_streams) return false;
  if (thread == StepThread::kCompute || (thread == StepThread::kCaller && device_.intra_op_threads() == 1)) {
    return false;
  }
  size_t bytes = 0;
  for (const int32_t slot : plan_.InputSlots(node)) bytes += slots_[static_cast<size_t>(slot)].bytes();
  return bytes > kExpensiveBytes;
}

bool StepRun::RunNode(const PlanNode& node, bool on_compute_thread) {
  const auto index = &node - plan_.nodes.data();
  position_.Enter(static_cast<size_t>(index));
  arena_.BeginNode(static_cast<int32_t>(index));
  KernelContext context = ContextOf(node);
  context.set_allocator(node.on_host ? HostAllocator() : *memory_);
  if (on_compute_thread) context.set_num_threads(device_.intra_op_threads());
  if (node.sends) EndTurn();
  TraceStart(node);
  try {
    ComputeNode(node, context);
  } catch (...) {
    Fail(node, Status::FromCurrentException());
    return false;
  }
  TraceEnd(node);
  FinishNode(node);
  return true;
}

void StepRun::ComputeNode(const PlanNode& node, KernelContext& context) {
  if (node.updates) {
    step_->closure_updates != nullptr ? ComputeOnce(node, context) : ComputeUpdate(node, context);
  } else {
    node.kernel->Compute(context);
  }
  for (int32_t i = 0; i < node.num_outputs; ++i) {
    if (!slots_[static_cast<size_t>(node.output_begin + i)].defined()) [[unlikely]] {
      throw InternalError(StrCat("the kernel left output ", i, " unset"));
    }
  }
}

void StepRun::ComputeOnce(const PlanNode& node, KernelContext& context) {
  const std::optional<std::string> update = step_->closure_updates->Begin(*node.node, context);
  if (!update) return;
  try {
    ComputeUpdate(node, context);
  } catch (...) {
    step_->closure_updates->Undo(*update);
    throw;
  }
}

bool StepRun::BeginAddition(const PlanNode& node, const KernelContext& context) {
  if (!node.node->op().adds_to_resource()) return false;
  return !step_->closure_updates->BeginAddition(*node.node, context);
}

void StepRun::ComputeUpdate(const PlanNode& node, KernelContext& context) {
  if (gate_.observed()) [[unlikely]] {
    ComputeObserved(node, context);
  } else {
    node.kernel->Compute(context);
  }
}

void StepRun::ComputeObserved(const PlanNode& node, KernelContext& context) {
  if (recorder_ == nullptr) {
    recorder_ = std::make_unique<UpdateRecorder>(plan_, gate_, [this](const Status& status) { FailWith(status); });
  }
  recorder_->BeginUpdate(node, context);
  node.kernel->Compute(context);
  recorder_->UpdateDone();
  if (gate_.in_last_update()) recorder_->EndTurn();  // what the step does afterwards needs no turn
}

void StepRun::FinishNode(const PlanNode& node) {
  Tensor* slots = slots_.data();
  int32_t* uses = uses_.data();
  const bool shared = !plan_.is_synchronous();  // another thread may give up the same slot at the same time
  for (const int32_t slot : plan_.InputSlots(node)) {
    std::atomic_ref<int32_t> left(uses[slot]);
    int32_t now;
    if (shared) {
      now = left.fetch_sub(1, std::memory_order_acq_rel) - 1;
    } else {
      now = left.load(std::memory_order_relaxed) - 1;
      left.store(now, std::memory_order_release);
    }
    if (now == 0) slots[slot].Reset();
  }
  for (int32_t slot = node.output_begin; slot < node.output_begin + node.num_outputs; ++slot) {
    if (uses[slot] == 0) slots[slot].Reset();
  }
  if (node.updates) gate_.UpdateDone();
}

void StepRun::Fail(const PlanNode& node, const Status& status) {
  // An error that work on a stream has reported is complete. A cancelled step tells why it was cancelled, which is
  // complete, too.
  const bool reported = step_->error != nullptr && step_->error->set();
  const bool cancelled = step_->cancellation != nullptr && step_->cancellation->cancelled();
  if (reported) return FailWith(step_->error->status());
  if (cancelled) return FailWith(status);
  FailWith(Status(status.code(), StrCat(status.message(), "\n  ", ContextOf(node).Describe())));
}

void StepRun::FailWith(const Status& status) {
  {
    MutexLock lock(mu_);
    if (!status_.ok()) return;
    status_ = status;
  }
  if (step_->cancellation != nullptr) step_->cancellation->Cancel(status);
  if (step_->rendezvous != nullptr) step_->rendezvous->Abort(status);
}

void StepRun::FlushSends() {
  try {
    step_->rendezvous->Flush();
  } catch (...) {
    FailWith(Status::FromCurrentException());  // no node's try block is around the threads that pause
  }
}

void StepRun::TakeError(const Status& of_device) {
  if (!of_device.ok()) return FailWith(of_device);
  if (error_.set()) FailWith(error_.status());
}

void StepRun::WaitForStream() {
  // Not by a callback, which would wake two threads, one after the other. The work that is enqueued uses this object,
  // so the step cannot end before it. It does end: a stream runs what it has, or its device fails.
  constexpr std::chrono::hours kLong{24};
  TakeError(device_.compute_stream()->Record()->Synchronize(std::chrono::steady_clock::now() + kLong));
}

void StepRun::AfterStream(std::function<void()> end) {
  device_.compute_stream()->Record()->OnReady([this, end = std::move(end)](const Status& status) {
    device_.RunOnHost([this, end, status] {
      TakeError(status);
      end();
    });
  });
}

bool StepRun::Cancelled(const PlanNode& node) {
  const CancellationManager* cancellation = step_->cancellation;
  if (cancellation == nullptr || !cancellation->cancelled() || gate_.inside()) return false;
  Fail(node, cancellation->status());
  return true;
}

void StepRun::EnteredGate(const PlanNode& node) {
  waits_at_gate_ = nullptr;
  if (Cancelled(node)) {
    gate_.TurnBack();
  } else {
    gate_.Entered();
  }
}

Status StepRun::CloseStep() {
  gate_.LeaveIfInside();
  if (trace_ != nullptr) [[unlikely]] {
    trace_->GiveTo(*step_->trace, step_->caller);
    trace_.reset();
  }
  // On a stream, no update behind an error is applied.
  if (step_->closure_updates != nullptr && EndsOnStream() && error_.set()) {
    step_->closure_updates->UndoAfter(static_cast<size_t>(error_.updates_applied()));
  }
  Status status;
  {
    MutexLock lock(mu_);
    if (!status_.ok()) std::swap(status, status_);
  }
  if (!status.ok()) {
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (plan_.initial_uses[slot] < Plan::kForEver) slots_[slot].Reset();
    }
  }
  arena_.EndRun(status.ok());
  position_.End();
  return status;
}

}  // namespace cohort
