#include "cohort/keras/callbacks/callback.h"

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {

std::string CallbackHost::BackUpTraining() {
  throw UnimplementedError("[keras/callbacks] expected a model whose training can be backed up");
}
bool CallbackHost::RestoreTraining(const std::optional<std::string>&, const std::string&) {
  throw UnimplementedError("[keras/callbacks] expected a model whose training can be taken up again");
}

void CallbackHost::PutAveragesInModel(bool) {
  throw UnimplementedError("[keras/callbacks] expected a model whose optimizer keeps averages of the weights");
}

std::vector<Callback::State> CallbackList::SaveStates() const {
  std::vector<State> states;
  for (const CallbackPtr& callback : callbacks_) {
    if (std::optional<State> state = callback->SaveState()) states.push_back(std::move(*state));
  }
  return states;
}

void CallbackList::RestoreStates(const std::vector<State>& states, const std::string& where) {
  std::vector<bool> taken(states.size(), false);
  for (const CallbackPtr& callback : callbacks_) {
    const std::optional<State> now = callback->SaveState();
    if (!now) continue;
    size_t i = 0;
    while (i < states.size() && (taken[i] || states[i].kind != now->kind)) ++i;
    if (i == states.size()) {
      LogWarning("keras", "there is no state of a ", now->kind, " callback in '", where, "': it begins anew");
      continue;
    }
    taken[i] = true;
    if (callback->RestoreState(states[i].values)) continue;
    throw InvalidArgumentError(StrCat("[keras/restore] expected the state of a ", now->kind, " callback in '", where,
                                      "'; got ", states[i].values.size(),
                                      " values that are not one; remove the file to begin the training anew"));
  }
}

void CallbackList::AttachAll(CallbackHost* host, const FitParams& params) {
  for (const CallbackPtr& callback : callbacks_) callback->Attach(host, params);
}
void CallbackList::SetStepsOfAll(int64_t steps) {
  for (const CallbackPtr& callback : callbacks_) callback->SetSteps(steps);
}

void CallbackList::OnTrainBegin() {
  for (const CallbackPtr& callback : callbacks_) callback->OnTrainBegin();
}
void CallbackList::OnTrainEnd(const Logs& logs) {
  for (const CallbackPtr& callback : callbacks_) callback->OnTrainEnd(logs);
}
void CallbackList::OnTrainInterrupted() {
  for (const CallbackPtr& callback : callbacks_) callback->OnTrainInterrupted();
}
void CallbackList::OnEpochBegin(int epoch) {
  for (const CallbackPtr& callback : callbacks_) callback->OnEpochBegin(epoch);
}
void CallbackList::OnEpochEnd(int epoch, Logs& logs) {
  for (const CallbackPtr& callback : callbacks_) callback->OnEpochEnd(epoch, logs);
}
void CallbackList::OnTrainBatchBegin(int64_t batch) {
  for (const CallbackPtr& callback : callbacks_) callback->OnTrainBatchBegin(batch);
}
void CallbackList::OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) {
  for (const CallbackPtr& callback : callbacks_) callback->OnTrainBatchEnd(batch, logs);
}
void CallbackList::OnTestBegin() {
  for (const CallbackPtr& callback : callbacks_) callback->OnTestBegin();
}
void CallbackList::OnTestEnd(const Logs& logs) {
  for (const CallbackPtr& callback : callbacks_) callback->OnTestEnd(logs);
}
void CallbackList::OnTestBatchBegin(int64_t batch) {
  for (const CallbackPtr& callback : callbacks_) callback->OnTestBatchBegin(batch);
}
void CallbackList::OnTestBatchEnd(int64_t batch, const BatchLogs& logs) {
  for (const CallbackPtr& callback : callbacks_) callback->OnTestBatchEnd(batch, logs);
}

namespace {

class FunctionCallback final : public Callback {
 public:
  explicit FunctionCallback(LambdaCallbackOptions options) : functions_(std::move(options)) {}

  void OnTrainBegin() override {
    if (functions_.on_train_begin) functions_.on_train_begin();
  }
  void OnTrainEnd(const Logs& logs) override {
    if (functions_.on_train_end) functions_.on_train_end(logs);
  }
  void OnEpochBegin(int epoch) override {
    if (functions_.on_epoch_begin) functions_.on_epoch_begin(epoch);
  }
  void OnEpochEnd(int epoch, Logs& logs) override {
    if (functions_.on_epoch_end) functions_.on_epoch_end(epoch, logs);
  }
  void OnTrainBatchBegin(int64_t batch) override {
    if (functions_.on_train_batch_begin) functions_.on_train_batch_begin(batch);
  }
  void OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) override {
    if (functions_.on_train_batch_end) functions_.on_train_batch_end(batch, logs);
  }
  std::optional<std::string> needs_batches() const override {
    const bool any = functions_.on_train_batch_begin || functions_.on_train_batch_end;
    return any ? std::optional<std::string>("LambdaCallback") : std::nullopt;
  }

 private:
  const LambdaCallbackOptions functions_;
};

}  // namespace

CallbackPtr LambdaCallback(LambdaCallbackOptions options) {
  return std::make_shared<FunctionCallback>(std::move(options));
}

}  // namespace cohort::keras
