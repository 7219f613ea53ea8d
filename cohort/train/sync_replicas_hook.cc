#include "cohort/train/sync_replicas_hook.h"

#include "cohort/core/error.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/step_clock.h"
#include "cohort/ops/summary.h"
#include "cohort/train/queue_runner.h"

namespace cohort::train {

Output AsInt64(Output step) { return step.dtype() == DType::kInt64 ? step : ops::Cast(step, DType::kInt64); }

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
  failure_.code = ops::Placeholder(graph, DType::kInt32, Shape(), "error_code");
  failure_.message = ops::Placeholder(graph, DType::kString, Shape(), "error_message");
  failure_.fail_own_step = parts_->tokens->FailSession(failure_.code, failure_.message);
}

void SyncReplicasHook::AfterCreateSession(Session& session, Coordinator& coordinator) {
  if (worker_init_ == nullptr) {
    throw FailedPreconditionError("[train/sync replicas] expected Begin before AfterCreateSession");
  }
  if (chief_init_ == nullptr) return session.Run(worker_init_);
  *ended_ = false;
  session.Run(chief_init_);
  session.Run(init_tokens_);
  // Prepared now, because the end of a run must not wait.
  session.MakeCallable({failure_.code, failure_.message}, {}, {failure_.fail_own_step});
  RepeatOp(session, parts_->chief_op,
           [failure = failure_, ended = ended_, &session, &coordinator](const Status& status) {
             // A run that was cancelled says that the session closes.
             if (*ended || status.code() == Code::kCancelled) return;
             OnLoopEnd(status, failure, session, coordinator);
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
  RunRequest fail;
  fail.feeds = {{failure.code, Tensor::Scalar(static_cast<int32_t>(told.code()))},
                {failure.message, Tensor::Scalar(told.message())}};
  fail.targets = {failure.fail_own_step};
  session.RunAsync(std::move(fail), [told, &coordinator](const Status& reached, const RunResults&) {
    const bool is_loss = told.code() == Code::kAborted || told.code() == Code::kUnavailable;
    if (reached.ok() && !is_loss)
      coordinator.RequestStop(told);  // else the session is closed, or its steps fail anyway
  });
}

}  // namespace cohort::train
