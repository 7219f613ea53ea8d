// RemoteTask: a task of another process, as the master of a session sees it.
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

class RemoteTask final : public TaskClient {
 public:
  // Bound to one connection and so to one incarnation of the task.
  RemoteTask(std::weak_ptr<ClusterNode> node, std::shared_ptr<Connection> connection)
      : node_(std::move(node)), connection_(std::move(connection)), name_(connection_->peer().task) {}
  // The first exchange, before devices() is asked. Throws DeadlineExceededError, UnavailableError.
  void FetchDevices(std::chrono::steady_clock::time_point deadline);

  // Tells the task that training is done, and returns when it has answered. Throws DeadlineExceededError, and
  // UnavailableError if the task ends without an answer.
  void TellTrainingDone(std::chrono::steady_clock::time_point deadline);

  const std::string& name() const override { return name_; }
  const std::vector<DeviceAttributes>& devices() const override { return devices_; }
  void Register(ExecutableSpec spec) override;
  void StartStep(const ExecutableKey& key, int64_t step, std::vector<Tensor> args, Executor::Mode mode,
                 StepDone done) override;
  // The caller's `done` is called at once: it does not wait for a task that may be stuck.
  void CancelStep(const ExecutableKey& key, int64_t step, const Status& why) override;
  void CloseSession(uint64_t session) override;
  void ResetContainer(const std::string& container) override;

  // From the node.
  void OnDevices(DevicesReply reply);
  void OnRegistered(const RegisteredReply& reply);
  void OnTrainingDoneAck(uint64_t request);
  void OnStepDone(const StepDoneMessage& done, std::vector<Tensor> rets);
  void OnLost(const Status& why);

 private:
  struct Request {
    bool answered = false;
    Status status;
    std::vector<DeviceAttributes> devices;
  };
  using StepKey = std::pair<ExecutableKey, int64_t>;

  // Sends what `encode` makes of a request number and waits for its answer.
  Request Ask(const std::function<Message(uint64_t)>& encode, const char* what,
              std::chrono::steady_clock::time_point deadline);
  void Answer(uint64_t request, const std::function<void(Request&)>& fill) COHORT_EXCLUDES(mu_);
  // Why nothing can be sent: AbortedError when the task is back as another incarnation, else UnavailableError.
  Status LostStatus();

  const std::weak_ptr<ClusterNode> node_;
  const std::shared_ptr<Connection> connection_;
  const std::string name_;
  Mutex fetching_;
  bool has_devices_ COHORT_GUARDED_BY(fetching_) = false;
  std::vector<DeviceAttributes> devices_;  // written once, under fetching_, before anybody has the task

  Mutex mu_;
  CondVar answered_;
  std::map<uint64_t, Request*> requests_ COHORT_GUARDED_BY(mu_);
  std::map<StepKey, StepDone> steps_ COHORT_GUARDED_BY(mu_);
  Status lost_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
