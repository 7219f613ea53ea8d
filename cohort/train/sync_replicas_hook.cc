// After SIGTERM a step may wait for a token that does not come, because the chief or another worker has left. So each
// worker looks after itself (LeaveAfterSigterm), and nobody has to know what the others do. A worker whose chief alone
// is stopped has not got the signal, and so it waits for the chief that comes back.
#include "cohort/train/sync_replicas_hook.h"

#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/step_clock.h"
#include "cohort/ops/summary.h"
#include "cohort/train/clock.h"
#include "cohort/train/queue_runner.h"

namespace cohort::train {
namespace {

// How often a worker looks for SIGTERM, and how many of these looks its step may go on to wait for a token. The chief
// waits longer, because the others may still be in their steps, and its own step is then complete.
constexpr std::chrono::milliseconds kLookForSigterm{500};
constexpr int kLooksOfWorker = 4;
constexpr int kLooksOfChief = 10;

}  // namespace

Output AsInt64(Output step) { return step.dtype() == DType::kInt64 ? step : ops::Cast(step, DType::kInt64); }

RunRequest SyncReplicasHook::Failure::Request(const Status& error) const {
  return {
      .feeds = {{code, Tensor::Scalar(static_cast<int32_t>(error.code()))}, {message, Tensor::Scalar(error.message())}},
      .targets = {fail_own_step}};
}

Node* PutTokens(const ops::Queue& queue, const ops::Variable& global_step, int count) {
  const ColocateWith beside(queue.handle().graph(), *global_step.handle().node);
  const Output dims = ops::Const(queue.handle().graph(), std::vector<int32_t>{count}, "tokens/dims");
  return queue.EnqueueMany({ops::Fill(dims, AsInt64(global_step.Read()), "tokens")});
}

void SyncReplicasHook::Begin(Graph& graph) {
  const DeviceScope anywhere(graph, nullptr);
  const ControlDependencies none(graph, nullptr);
  const NameScope scope(graph, "sync_replicas_init");
  worker_init_ = parts_->local_step.Assign(AsInt64(parts_->global_step.value()));
  if (parts_->clock.valid()) worker_init_ = ops::Group(graph, {worker_init_, ops::StepClockJoin(parts_->clock)});
  if (parts_->tokens) {
    failure_.code = ops::Placeholder(graph, DType::kInt32, Shape(), "error_code");
    failure_.message = ops::Placeholder(graph, DType::kString, Shape(), "error_message");
    failure_.fail_own_step = parts_->tokens->FailSession(failure_.code, failure_.message);
  }
  if (!is_chief_) return;
  AddSummaries();
  if (parts_->tokens) AddChiefOps(graph);
}

void SyncReplicasHook::AddSummaries() {
  if (parts_->clock.valid()) {
    const Output staleness = ops::StepClockTakeStaleness(parts_->clock);
    ops::HistogramSummary("sync_replicas/staleness", ops::Cast(staleness, DType::kFloat32));
  } else {
    ops::ScalarSummary("sync_replicas/stale_gradients", ops::Cast(parts_->num_stale, DType::kFloat32));
  }
}

void SyncReplicasHook::AddChiefOps(Graph& graph) {
  std::vector<Node*> set_steps{worker_init_};
  for (const auto& accumulator : parts_->accumulators) {
    set_steps.push_back(accumulator->SetGlobalStep(AsInt64(parts_->global_step.value())));
  }
  chief_init_ = ops::Group(graph, set_steps, "chief_init");
  init_tokens_ = parts_->tokens->Reset();
  if (num_tokens_ > 0) {
    const ControlDependencies emptied(graph, {init_tokens_});
    init_tokens_ = PutTokens(*parts_->tokens, parts_->global_step, num_tokens_);
  }
  close_tokens_ = parts_->tokens->Close();
}

void SyncReplicasHook::AfterCreateSession(Session& session, Coordinator& coordinator) {
  if (worker_init_ == nullptr) {
    throw FailedPreconditionError("[train/sync replicas] expected Begin before AfterCreateSession");
  }
  // Prepared now, because the end of a run must not wait.
  if (failure_.fail_own_step != nullptr) {
    session.MakeCallable({failure_.code, failure_.message}, {}, {failure_.fail_own_step});
  }
  if (chief_init_ == nullptr) {
    session.Run(worker_init_);
  } else {
    StartLoop(session, coordinator);
  }
  if (failure_.fail_own_step != nullptr) LeaveAfterSigterm(session, coordinator);
}

void SyncReplicasHook::StartLoop(Session& session, Coordinator& coordinator) {
  *ended_ = false;
  session.Run(chief_init_);
  session.Run(init_tokens_);
  RepeatOp(session, parts_->chief_op,
           [failure = failure_, ended = ended_, &session, &coordinator](const Status& status) {
             // A run that was cancelled says that the session closes.
             if (*ended || status.code() == Code::kCancelled) return;
             OnLoopEnd(status, failure, session, coordinator);
           });
}

void SyncReplicasHook::LeaveAfterSigterm(Session& session, Coordinator& coordinator) const {
  const int patience = is_chief_ ? kLooksOfChief : kLooksOfWorker;
  // A new chief may have emptied the queue before the step came to its wait. So the wait is ended anew at each look.
  coordinator.Loop("sync sigterm", kLookForSigterm, [failure = failure_, patience, &session, looks = 0]() mutable {
    if (!StopSignal::Received() || ++looks <= patience) return;
    if (looks == patience + 1) {
      LogInfo("train", "SyncReplicas: no step may wait for a token any more, because this task has got ",
              StopSignal::Name());
    }
    session.RunAsync(failure.Request(Status(Code::kOutOfRange,
                                            StrCat("[train/sync replicas] expected a token within ",
                                                   SecondsOf(patience * kLookForSigterm), " s of ", StopSignal::Name(),
                                                   "; got none, because the chief or another worker has left; start ",
                                                   "this task again, and it goes on"))),
                     [](const Status&, const RunResults&) {});
  });
}

void SyncReplicasHook::End(Session& session) {
  if (close_tokens_ == nullptr) return;
  *ended_ = true;
  // After SIGTERM the training is not done: the workers wait for a chief that comes back.
  if (StopSignal::Received()) return;
  session.Run(close_tokens_);
}

// After the loss of a task a new session may follow, so the coordinator is then not asked to stop.
void SyncReplicasHook::OnLoopEnd(const Status& status, const Failure& failure, Session& session,
                                 Coordinator& coordinator) {
  const Status told(status.code(),
                    StrCat("[train/sync replicas] the chief's loop, which applies the gradients of all workers, has ",
                           "failed: ", status.message()));
  session.RunAsync(failure.Request(told), [told, &coordinator](const Status& reached, const RunResults&) {
    const bool is_loss = told.code() == Code::kAborted || told.code() == Code::kUnavailable;
    if (reached.ok() && !is_loss)
      coordinator.RequestStop(told);  // else the session is closed, or its steps fail anyway
  });
}

}  // namespace cohort::train
