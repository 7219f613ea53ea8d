#include "cohort/runtime/executor.h"

#include <omp.h>

#include <bit>
#include <cstring>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/runtime/bias_fusion.h"
#include "cohort/runtime/function_library.h"
#include "cohort/runtime/image_gradient_fusion.h"
#include "cohort/runtime/layout.h"
#include "cohort/runtime/memory_placement.h"

namespace cohort {
namespace {

// In place of a node's index: the step waits for the update gate and is no longer this thread's.
constexpr size_t kParked = SIZE_MAX;
// Inputs of this many bytes make a kernel expensive: about 50 us of memory traffic.
constexpr size_t kExpensiveBytes = 256 * 1024;

// Kernels off the compute thread run on one core, whatever team the thread would get otherwise.
class OneThreadScope {
 public:
  explicit OneThreadScope(bool active) : saved_(active ? omp_get_max_threads() : 0) {
    if (saved_ > 1) omp_set_num_threads(1);
  }
  ~OneThreadScope() {
    if (saved_ > 1) omp_set_num_threads(saved_);
  }

 private:
  int saved_;
};

std::string DescribeRun(const Node& node, const Device& device, const Tensor* slots, const int32_t* input_slots) {
  std::string inputs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Tensor& value = slots[input_slots[i]];
    inputs += StrCat(i > 0 ? ", " : "", value.dtype(), value.shape());
  }
  return StrCat("[[", node.op_name(), " node '", node.name(), "' on ", device.name(), ", inputs: ", inputs, "]]");
}

std::string DescribeCallers(const CallFrame* frame) {
  std::string callers;
  for (; frame != nullptr; frame = frame->outer) {
    callers += StrCat("\n  in function '", frame->function, "', called by ", frame->caller.op_name(), " node '",
                      frame->caller.name(), "'");
  }
  return callers;
}

std::unique_ptr<Graph> Improved(std::unique_ptr<Graph> graph, const std::string& device_type) {
  graph = FuseImageGradients(FuseBiases(std::move(graph), device_type), device_type);
  ChooseOrders(*graph, device_type);
  return graph;
}

}  // namespace

struct Executor::StepState {
  explicit StepState(ArenaPlanner& planner) : arena(planner) {}

  const StepInfo* step = nullptr;
  Mode mode = Mode::kInline;
  Done done;
  std::vector<Tensor> slots;
  std::vector<int32_t> uses;
  std::atomic<int32_t> updates_left{0};
  std::atomic<bool> in_gate{false};
  StepAllocator arena;
  Allocator* memory = nullptr;  // of synchronous kernels: `arena`, or the device's
  uint32_t runs = 0;

  // What follows is used by plans with asynchronous kernels only.
  Mutex mu;
  std::vector<int32_t> pending GUARDED_BY(mu);
  std::vector<int32_t> ready GUARDED_BY(mu);  // a queue: [ready_head, size)
  size_t ready_head GUARDED_BY(mu) = 0;
  int32_t waiting GUARDED_BY(mu) = 0;           // asynchronous kernels that have not called done, and the gate
  std::vector<int32_t> at_gate GUARDED_BY(mu);  // updates that wait for the gate
  bool running GUARDED_BY(mu) = false;
  Status status GUARDED_BY(mu);
};

struct Executor::AsyncRun {
  Executor* executor;
  StepState* state;
  int32_t index;
  KernelContext context;
};

Executor::Executor(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions)
    : graph_(Improved(std::move(graph), device.type())),
      device_(device),
      own_functions_(functions == nullptr ? std::make_unique<FunctionLibrary>(*graph_, device) : nullptr),
      functions_(functions == nullptr ? *own_functions_ : *functions) {
  if (!device_.allocator().space().is_host()) PlaceInMemory(*graph_);
  Compile();
  KeepConstants();
  PlanArena();
}

Executor::~Executor() = default;

Executor::StepState* Executor::TakeState() {
  {
    MutexLock lock(pool_mu_);
    if (!pool_.empty()) {
      StepState* state = pool_.back().release();
      pool_.pop_back();
      return state;
    }
  }
  auto state = std::make_unique<StepState>(*arena_planner_);
  state->slots.resize(static_cast<size_t>(num_slots_));
  state->uses.resize(static_cast<size_t>(num_slots_));
  for (const auto& [slot, value] : constants_) state->slots[static_cast<size_t>(slot)] = value;
  if (async_nodes_ > 0) {
    MutexLock lock(state->mu);
    state->pending.resize(nodes_.size());
    state->ready.reserve(nodes_.size());
  }
  return state.release();
}

void Executor::GiveBack(StepState* state) {
  MutexLock lock(pool_mu_);
  pool_.emplace_back(state);
}

void Executor::BeginStep(StepState* state, const StepInfo& step, Mode mode) {
  state->step = &step;
  state->mode = mode;
  state->updates_left.store(update_nodes_, std::memory_order_relaxed);
  state->in_gate = step.in_update_gate;
  state->memory = WantsArena(state, step) ? static_cast<Allocator*>(&state->arena) : &device_.allocator();
  if (num_slots_ > 0) {
    std::memcpy(state->uses.data(), initial_uses_.data(), initial_uses_.size() * sizeof(int32_t));
  }
}

// A plan of small values alone does without; it is looked at again after 1, 2, 4, 8.. runs, or when a feed is large.
bool Executor::WantsArena(StepState* state, const StepInfo& step) const {
  if (!has_host_memory_) return false;
  if (arena_planner_->in_use() || std::has_single_bit(++state->runs)) return true;
  for (const Tensor& arg : step.args) {
    if (arg.num_elements() >= static_cast<int64_t>(kArenaFromBytes / sizeof(float))) return true;
  }
  return false;
}

Status Executor::RunSync(const StepInfo& step) {
  StepState* state = TakeState();
  BeginStep(state, step, Mode::kInline);
  const size_t stopped = RunLinear(state, 0, Thread::kCaller);
  if (stopped < nodes_.size()) {
    Mutex mu;
    CondVar changed;
    bool ended = false;
    // The compute thread must not wait for the gate: a step inside may need it.
    if (state->updates_left > 0 && !state->in_gate) {
      device_.task().update_gate.EnterStep();
      state->in_gate = true;
    }
    device_.compute_thread().Schedule([&, state, stopped] {
      RunLinear(state, stopped, Thread::kCompute);
      MutexLock lock(mu);
      ended = true;
      changed.NotifyAll();
    });
    MutexLock lock(mu);
    while (!ended) changed.Wait(mu);  // ends: kernels of a synchronous plan wait for nobody
  }
  return CloseStep(state);
}

void Executor::RunAsync(const StepInfo& step, Mode mode, Done done) {
  StepState* state = TakeState();
  BeginStep(state, step, mode);
  state->done = std::move(done);
  const bool synchronous = is_synchronous();
  if (!synchronous) {
    MutexLock lock(state->mu);
    std::memcpy(state->pending.data(), initial_pending_.data(), initial_pending_.size() * sizeof(int32_t));
    state->ready.assign(sources_.begin(), sources_.end());
    state->ready_head = 0;
    state->waiting = 0;
    state->running = true;
    state->status = Status();
  }
  const auto run = [this, state, synchronous](Thread thread) {
    synchronous ? RunLinearAsync(state, 0, thread) : Drain(state, thread);
  };
  if (mode != Mode::kDevice) {
    run(mode == Mode::kInline ? Thread::kCaller : Thread::kOther);
  } else if (step.caller != nullptr && device_.compute_thread().IsOwnThread()) {
    run(Thread::kCompute);
  } else {
    device_.compute_thread().Schedule([run] { run(Thread::kCompute); });
  }
}

bool Executor::ShouldMove(const StepState* state, const PlanNode& plan_node, Thread thread) const {
  if (thread == Thread::kCompute || (thread == Thread::kCaller && device_.intra_op_threads() == 1)) return false;
  size_t bytes = 0;
  for (const int32_t slot : InputSlots(plan_node)) bytes += state->slots[static_cast<size_t>(slot)].bytes();
  return bytes > kExpensiveBytes;
}

size_t Executor::RunLinear(StepState* state, size_t from, Thread thread) {
  const bool on_compute_thread = thread == Thread::kCompute;
  const OneThreadScope one_thread(!on_compute_thread);
  for (size_t i = from; i < nodes_.size(); ++i) {
    if (Cancelled(state, nodes_[i])) break;
    if (ShouldMove(state, nodes_[i], thread)) {
      FlushSends(state);
      return i;
    }
    if (nodes_[i].updates && !PassGateLinear(state, i)) return kParked;
    if (!RunAndFinish(state, nodes_[i], on_compute_thread)) break;
  }
  FlushSends(state);
  return nodes_.size();
}

void Executor::RunLinearAsync(StepState* state, size_t from, Thread thread) {
  const size_t stopped = RunLinear(state, from, thread);
  if (stopped == kParked) return;
  if (stopped == nodes_.size()) return EndStep(state);
  device_.compute_thread().Schedule([this, state, stopped] { RunLinearAsync(state, stopped, Thread::kCompute); });
}

bool Executor::RunAndFinish(StepState* state, const PlanNode& plan_node, bool on_compute_thread) {
  state->arena.BeginNode(static_cast<int32_t>(&plan_node - nodes_.data()));
  if (plan_node.chain >= 0) return RunFused(state, plan_node, on_compute_thread);
  if (!RunNode(state, plan_node, on_compute_thread)) return false;
  FinishNode(state, plan_node);
  return true;
}

bool Executor::RunFused(StepState* state, const PlanNode& plan_node, bool on_compute_thread) {
  const Chain& chain = chains_[static_cast<size_t>(plan_node.chain)];
  bool fused;
  try {
    fused = chain.fused.Run(state->slots.data(), state->uses.data(), *state->memory,
                            on_compute_thread ? device_.intra_op_threads() : 1,
                            state->slots[static_cast<size_t>(plan_node.output_begin)]);
  } catch (...) {
    Fail(state, plan_node, Status::FromCurrentException());
    return false;
  }
  if (fused) {
    FinishNode(state, plan_node);
    return true;
  }
  for (PlanNode member : chain.members) {
    member.chain = -1;  // on its own, for once
    if (!RunNode(state, member, on_compute_thread)) return false;
    FinishNode(state, member);
  }
  return true;
}

std::span<const int32_t> Executor::InputSlots(const PlanNode& plan_node) const {
  if (plan_node.chain >= 0) return chains_[static_cast<size_t>(plan_node.chain)].inputs;
  return {input_slots_.data() + plan_node.input_begin, static_cast<size_t>(plan_node.num_inputs)};
}

void Executor::FlushSends(StepState* state) {
  if (has_sends_) state->step->rendezvous->Flush();
}

bool Executor::RunNode(StepState* state, const PlanNode& plan_node, bool on_compute_thread) {
  Tensor* slots = state->slots.data();
  KernelContext context(*plan_node.node, device_, *state->step, slots, input_slots_.data() + plan_node.input_begin,
                        slots + plan_node.output_begin, state->uses.data());
  context.set_allocator(*state->memory);
  if (on_compute_thread) context.set_num_threads(device_.intra_op_threads());
  try {
    plan_node.kernel->Compute(context);
    for (int32_t i = 0; i < plan_node.num_outputs; ++i) {
      if (!slots[plan_node.output_begin + i].defined()) [[unlikely]] {
        throw InternalError(StrCat("the kernel left output ", i, " unset"));
      }
    }
    return true;
  } catch (...) {
    Fail(state, plan_node, Status::FromCurrentException());
    return false;
  }
}

void Executor::FinishNode(StepState* state, const PlanNode& plan_node) {
  Tensor* slots = state->slots.data();
  int32_t* uses = state->uses.data();
  const bool shared = !is_synchronous();  // another thread may give up the same slot at the same time
  for (const int32_t slot : InputSlots(plan_node)) {
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
  for (int32_t slot = plan_node.output_begin; slot < plan_node.output_begin + plan_node.num_outputs; ++slot) {
    if (uses[slot] == 0) slots[slot].Reset();
  }
  if (plan_node.updates) LeaveGateIfLast(state);
}

void Executor::PushSuccessors(StepState* state, const PlanNode& plan_node) NO_THREAD_SAFETY_ANALYSIS {
  const int32_t* successors = successors_.data() + plan_node.successor_begin;
  for (int32_t i = 0; i < plan_node.num_successors; ++i) {
    if (--state->pending[static_cast<size_t>(successors[i])] == 0) state->ready.push_back(successors[i]);
  }
}

// What has begun of a set of updates is applied whole all the same.
void Executor::SkipAfterFailure(StepState* state) NO_THREAD_SAFETY_ANALYSIS {
  const auto is_owed = [&](int32_t index) { return state->in_gate && nodes_[static_cast<size_t>(index)].updates; };
  while (state->ready_head < state->ready.size() && !is_owed(state->ready[state->ready_head])) ++state->ready_head;
}

void Executor::Drain(StepState* state, Thread thread) {
  const bool on_compute_thread = thread == Thread::kCompute;
  const OneThreadScope one_thread(!on_compute_thread);
  for (;;) {
    int32_t index;
    bool ended = false;
    bool idle = false;
    {
      MutexLock lock(state->mu);
      const bool failed = !state->status.ok();
      if (failed) SkipAfterFailure(state);
      if (state->ready_head == state->ready.size()) {
        idle = true;
        index = -1;
        if (state->waiting == 0) {
          ended = true;
        } else if (failed) {
          state->running = false;
        }
      } else {
        index = state->ready[state->ready_head++];
      }
      if (idle && failed && !ended) return;
    }
    if (ended) {
      FlushSends(state);
      EndStep(state);
      return;
    }
    if (idle) {
      // Before the thread leaves, what it has to send goes out; a value may come in meanwhile.
      FlushSends(state);
      MutexLock lock(state->mu);
      if (state->ready_head == state->ready.size() && state->waiting > 0) {
        state->running = false;
        return;
      }
      continue;
    }
    const PlanNode& plan_node = nodes_[static_cast<size_t>(index)];
    if (Cancelled(state, plan_node)) continue;
    if (plan_node.updates && !PassGate(state, index)) continue;
    if (plan_node.async != nullptr) {
      StartAsync(state, index, thread);
      continue;
    }
    if (ShouldMove(state, plan_node, thread)) {
      {
        MutexLock lock(state->mu);
        --state->ready_head;
      }
      FlushSends(state);
      device_.compute_thread().Schedule([this, state] { Drain(state, Thread::kCompute); });
      return;
    }
    if (RunAndFinish(state, plan_node, on_compute_thread)) {
      MutexLock lock(state->mu);
      PushSuccessors(state, plan_node);
    }
  }
}

void Executor::StartAsync(StepState* state, int32_t index, Thread thread) {
  const PlanNode& plan_node = nodes_[static_cast<size_t>(index)];
  Tensor* slots = state->slots.data();
  auto* run = new AsyncRun{
      this, state, index,
      KernelContext(*plan_node.node, device_, *state->step, slots, input_slots_.data() + plan_node.input_begin,
                    slots + plan_node.output_begin, state->uses.data())};
  run->context.SetCallInfo(thread == Thread::kOther ? Mode::kNetwork : state->mode, plan_node.updates);
  {
    MutexLock lock(state->mu);
    ++state->waiting;
  }
  try {
    plan_node.async->ComputeAsync(run->context, [this, run](const Status& status) { AsyncDone(run, status); });
  } catch (...) {
    AsyncDone(run, Status::FromCurrentException());  // a kernel throws before it has kept `done`, or not at all
  }
}

void Executor::AsyncDone(AsyncRun* run, const Status& status) {
  StepState* state = run->state;
  const PlanNode& plan_node = nodes_[static_cast<size_t>(run->index)];
  delete run;
  if (!status.ok()) Fail(state, plan_node, status);
  bool take_over = false;
  bool move = false;
  {
    MutexLock lock(state->mu);
    if (status.ok()) {
      FinishNode(state, plan_node);
      PushSuccessors(state, plan_node);
    }
    --state->waiting;
    if (!state->running) {
      // A failed step is ended by the last one that was waited for.
      take_over =
          state->status.ok() ? state->ready_head < state->ready.size() || state->waiting == 0 : state->waiting == 0;
      state->running = take_over;
      move = take_over && state->mode == Mode::kDevice;
    }
  }
  if (move) {
    device_.compute_thread().Schedule([this, state] { Drain(state, Thread::kCompute); });
  } else if (take_over) {
    Drain(state, Thread::kOther);
  }
}

void Executor::Fail(StepState* state, const PlanNode& plan_node, const Status& status) {
  const Tensor* slots = state->slots.data();
  Status described = status;
  {
    MutexLock lock(state->mu);
    if (!state->status.ok()) return;
    // A cancelled step tells why it was cancelled; that is already complete.
    if (state->step->cancellation == nullptr || !state->step->cancellation->cancelled()) {
      described =
          Status(status.code(),
                 StrCat(status.message(), "\n  ",
                        DescribeRun(*plan_node.node, device_, slots, input_slots_.data() + plan_node.input_begin),
                        DescribeCallers(state->step->caller)));
    }
    state->status = described;
  }
  if (state->step->cancellation != nullptr) state->step->cancellation->Cancel(described);
  if (state->step->rendezvous != nullptr) state->step->rendezvous->Abort(described);
}

bool Executor::InGate(StepState* state) {
  if (!state->in_gate) state->in_gate = device_.task().update_gate.TryEnterStep();
  return state->in_gate;
}

bool Executor::PassGateLinear(StepState* state, size_t index) {
  if (InGate(state)) return true;
  UpdateGate& gate = device_.task().update_gate;
  if (state->done == nullptr) {
    gate.EnterStep();
  } else {
    FlushSends(state);
    const auto go_on = [this, state, index] {
      device_.compute_thread().Schedule([this, state, index] {
        EnteredGate(state, nodes_[index]);
        RunLinearAsync(state, index, Thread::kCompute);
      });
    };
    if (!gate.EnterStepOrCall(go_on)) return false;
  }
  state->in_gate = true;
  return true;
}

bool Executor::PassGate(StepState* state, int32_t index) {
  {
    MutexLock lock(state->mu);
    if (state->at_gate.empty() && InGate(state)) return true;
    state->at_gate.push_back(index);
    if (state->at_gate.size() > 1) return false;  // the step waits there already
    ++state->waiting;
  }
  const auto opened = [this, state, index] {
    device_.compute_thread().Schedule([this, state, index] { OpenedGate(state, index); });
  };
  if (device_.task().update_gate.EnterStepOrCall(opened)) opened();
  return false;
}

void Executor::EnteredGate(StepState* state, const PlanNode& plan_node) {
  if (Cancelled(state, plan_node)) {
    device_.task().update_gate.LeaveStep();
  } else {
    state->in_gate = true;
  }
}

void Executor::OpenedGate(StepState* state, int32_t index) {
  EnteredGate(state, nodes_[static_cast<size_t>(index)]);
  {
    MutexLock lock(state->mu);
    if (state->status.ok()) state->ready.insert(state->ready.end(), state->at_gate.begin(), state->at_gate.end());
    state->at_gate.clear();
    --state->waiting;
    if (state->running) return;  // whoever runs it finds them
    state->running = true;
  }
  Drain(state, Thread::kCompute);
}

void Executor::LeaveGateIfLast(StepState* state) {
  if (state->updates_left.fetch_sub(1, std::memory_order_acq_rel) == 1) LeaveGate(state);
}

void Executor::LeaveGate(StepState* state) {
  if (!state->step->in_update_gate) device_.task().update_gate.LeaveStep();
  state->in_gate = false;
}

// A set of updates that has begun is applied whole, whatever becomes of its step.
bool Executor::Cancelled(StepState* state, const PlanNode& plan_node) {
  const CancellationManager* cancellation = state->step->cancellation;
  if (cancellation == nullptr || !cancellation->cancelled() || state->in_gate) return false;
  Fail(state, plan_node, cancellation->status());
  return true;
}

Status Executor::CloseStep(StepState* state) {
  if (state->in_gate) LeaveGate(state);
  Status status;
  {
    MutexLock lock(state->mu);
    std::swap(status, state->status);
  }
  if (!status.ok()) {
    for (size_t slot = 0; slot < state->slots.size(); ++slot) {
      if (initial_uses_[slot] < kForEver) state->slots[slot].Reset();
    }
  }
  state->arena.EndRun(status.ok());
  GiveBack(state);
  return status;
}

void Executor::EndStep(StepState* state) {
  const Done done = std::exchange(state->done, nullptr);
  const Status status = CloseStep(state);
  done(status);  // may free the executor: nothing of it is touched after this
}

}  // namespace cohort
