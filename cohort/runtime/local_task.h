// LocalTask: a task of this process, with the executables that sessions have registered there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

// Reaches a task of this process without any hop, and is what a server runs steps with. `devices` are shared with all
// that runs there. Thread-safe. Its end cancels the steps under way and waits for them.
// `self` is this task, and its process is the client of sessions whose master is here.
class LocalTask : public TaskClient {
 public:
  // Makes what sends an executable's values to other tasks; called by Register, so it may wait and throw. Null if there
  // are no other tasks.
  using SenderMaker = std::function<std::unique_ptr<ValueSender>(const ExecutableSpec&)>;

  LocalTask(ClientId self, std::shared_ptr<const DeviceSet> devices, std::shared_ptr<TaskResources> resources,
            SenderMaker make_sender = nullptr);
  ~LocalTask() override;

  const std::string& name() const override { return self_.task; }
  const std::vector<DeviceAttributes>& devices() const override { return attributes_; }
  void Register(ExecutableSpec spec) override;
  void StartStep(const ExecutableKey& key, int64_t step, std::vector<Tensor> args, Executor::Mode mode,
                 StepDone done) override;
  void CancelStep(const ExecutableKey& key, int64_t step, const Status& why) override;
  std::weak_ptr<Executable> FindInline(const ExecutableKey& key) const override;
  void CloseSession(uint64_t session) override;
  void ResetContainer(const std::string& container) override;

  // A value of `step` from another task. A value for an executable that is not there (its session has ended) is
  // dropped.
  void Deliver(const ExecutableKey& key, int64_t step, EdgeId edge, const Tensor& value);
  // Null where there is none.
  std::shared_ptr<Executable> Find(const ExecutableKey& key) const;
  // Cancels the steps of all executables that have a partition on `task`.
  void TaskLost(const std::string& task, const Status& why);
  // Ends all sessions; steps that come later are told that the task has ended.
  void CloseAll(const Status& why);
  std::vector<std::string> DescribeSteps() const;
  size_t num_executables() const;
  ResourceManager& resources() const { return resources_->resources; }

 private:
  // What a step is told whose executable is not there.
  Status UnknownExecutable(const ExecutableKey& key) const;
  void CloseExecutables(const std::function<bool(const ExecutableKey&)>& which, const Status& why);

  const ClientId self_;
  const std::shared_ptr<const DeviceSet> devices_;
  const std::shared_ptr<TaskResources> resources_;
  const SenderMaker make_sender_;
  std::vector<DeviceAttributes> attributes_;
  mutable Mutex mu_;
  std::map<ExecutableKey, std::shared_ptr<Executable>> executables_ COHORT_GUARDED_BY(mu_);
  Status ended_ COHORT_GUARDED_BY(mu_);  // why, once CloseAll was called
};

}  // namespace cohort
