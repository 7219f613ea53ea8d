// RemoteTask: a task in another process, as masters of this process use it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

class ClusterNode;

// Sends requests of masters over one connection and passes on the answers. The StepService makes one RemoteTask for
// each connection; it and the sessions of this process share it through shared_ptr. Thread-safe. When the connection
// has closed, all waiting calls and steps fail, and so do later ones.
class RemoteTask final : public TaskClient {
 public:
  // Sends all requests over `connection`, so the object belongs to one incarnation of the task. There is one exception:
  // if `connection` has closed, CloseSession uses another connection to the task.
  RemoteTask(std::weak_ptr<ClusterNode> node, std::shared_ptr<Connection> connection)
      : node_(std::move(node)), connection_(std::move(connection)), name_(connection_->peer().task) {}
  // Asks the task for its devices and waits for the answer. If an earlier call has succeeded, does nothing. devices()
  // may be called only after a call has succeeded. Throws DeadlineExceededError if the task does not answer in time,
  // and UnavailableError if the task is lost.
  void FetchDevices(std::chrono::steady_clock::time_point deadline);

  // Tells the task that training is done, and waits for its answer. Throws DeadlineExceededError if the task does not
  // answer in time, and UnavailableError if the connection closes without an answer.
  void TellTrainingDone(std::chrono::steady_clock::time_point deadline);

  // Asks the task about a step, over this connection. Throws DeadlineExceededError if the task does not answer in time,
  // and UnavailableError if the connection closes without an answer.
  StepReport AskHereAboutStep(uint64_t session, int64_t step, bool with_stacks,
                              std::chrono::steady_clock::time_point deadline);

  const std::string& name() const override { return name_; }
  const std::vector<DeviceAttributes>& devices() const override { return devices_; }
  // Sends the executable and waits until the task has prepared it. Throws the task's error, DeadlineExceededError if
  // the task has not answered after 10 minutes, and UnavailableError if the connection closes meanwhile. If the
  // connection has closed before the call, throws AbortedError if the task can be reached again, and else
  // UnavailableError.
  void Register(ExecutableSpec spec) override;
  // Asks the task to run one step, and returns without waiting for the answer. `done` gets the status of the step and
  // its results. Calls `done` once: on a network thread when the answer has come or the connection has closed, on the
  // thread that calls CancelStep or CloseSession, or on this thread if the connection has closed before.
  void StartStep(const ExecutableKey& key, const StepStart& step, std::vector<Tensor> args, Executor::Mode mode,
                 StepDone done) override;
  // Tells the task to cancel the step, also if the step is over there. Calls the `done` of StartStep, if it was not
  // called before, with `why` before it returns, without waiting for the task, which may not answer.
  void CancelStep(const ExecutableKey& key, int64_t step, const Status& why) override;
  // Tells the task that the session ends. Calls the `done` of the session's open steps with kCancelled.
  void CloseSession(uint64_t session) override;
  // Asks the task to remove all resources of the container, and does not wait for that. Does nothing if the connection
  // has closed.
  void ResetContainer(const std::string& container) override;

  // Asks over a new connection of a client of its own, because a kernel that does not return may block this one.
  StepReport AskAboutStep(const ExecutableKey& key, int64_t step, bool with_stacks,
                          std::chrono::steady_clock::time_point deadline) override;
  bool is_remote() const override { return true; }

  // Called by the StepService when an answer has come or the connection has closed.
  void OnDevices(DevicesReply reply);
  void OnRegistered(const RegisteredReply& reply);
  void OnTrainingDoneAck(uint64_t request);
  void OnStepReport(StepReportMessage reply);
  void OnStepDone(StepDoneMessage message, std::vector<Tensor> rets);
  void OnLost(const Status& why);

 private:
  struct Request {
    bool answered = false;
    Status status;
    std::vector<DeviceAttributes> devices;
    StepReport report;
  };
  using StepKey = std::pair<ExecutableKey, int64_t>;
  struct Step {
    StepDone done;
    std::shared_ptr<StepTrace> trace;  // null if the step is not traced
    bool start_is_sent = false;
  };

  // Sends the message that `encode` makes with a new request number, and waits for the answer. Throws the error in the
  // answer, or DeadlineExceededError.
  Request Ask(const std::function<Message(uint64_t)>& encode, const char* what,
              std::chrono::steady_clock::time_point deadline);
  void Answer(uint64_t request, const std::function<void(Request&)>& fill) COHORT_EXCLUDES(mu_);
  // Returns the error for a request after the connection has closed. Tries for at most 0.3 s to reach the task again.
  // If the task can be reached, the error is kAborted: what the task was doing for the session is gone, and the program
  // needs a new session. Otherwise it is the `why` of OnLost, or ok if OnLost was not called yet.
  Status LostStatus();

  const std::weak_ptr<ClusterNode> node_;
  const std::shared_ptr<Connection> connection_;
  const std::string name_;
  Mutex fetching_;
  bool has_devices_ COHORT_GUARDED_BY(fetching_) = false;
  // Written once, under fetching_. A thread reads it without the lock, after its call of FetchDevices has returned.
  std::vector<DeviceAttributes> devices_;

  Mutex mu_;
  CondVar answered_;
  std::map<uint64_t, Request*> requests_ COHORT_GUARDED_BY(mu_);
  std::map<StepKey, Step> steps_ COHORT_GUARDED_BY(mu_);
  // Steps that CancelStep has ended while StartStep was sending the start. The task ignores a cancel that comes before
  // the start, so StartStep sends it.
  std::map<StepKey, Status> early_cancels_ COHORT_GUARDED_BY(mu_);
  Status lost_ COHORT_GUARDED_BY(mu_);
};

// Asks the task at `address` what it does for a step, as RemoteTask::AskAboutStep does. If there is no such step, the
// report says what the task does for other steps. Throws the errors of PeerTable::ReachAddress, and those of
// AskHereAboutStep.
StepReport AskOverNewConnection(ClusterNode& node, const std::string& address, uint64_t session, int64_t step,
                                bool with_stacks, std::chrono::steady_clock::time_point deadline);

}  // namespace cohort
