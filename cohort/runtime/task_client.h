// TaskClient: how the master of a session reaches one task. ClusterView: the tasks that a session's target stands for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/runtime/executable.h"

namespace cohort {

struct SessionConfig;

// Thread-safe.
class TaskClient {
 public:
  using StepDone = Executable::StepDone;

  virtual ~TaskClient() = default;
  // "/job:ps/replica:0/task:0"
  virtual const std::string& name() const = 0;
  virtual const std::vector<DeviceAttributes>& devices() const = 0;
  // Throws what compiling throws there, AbortedError when the task is another incarnation than at the session's start,
  // UnavailableError when it is gone.
  virtual void Register(ExecutableSpec spec) = 0;
  // `done` is called once, on any thread, perhaps before StartStep returns; it also comes when the task is lost.
  virtual void StartStep(const ExecutableKey& key, int64_t step, std::vector<Tensor> args, Executor::Mode mode,
                         StepDone done) = 0;
  virtual void CancelStep(const ExecutableKey& key, int64_t step, const Status& why) = 0;
  // The executable where it lies in this process and runs_inline(), so that its steps need none of the above.
  virtual std::weak_ptr<Executable> FindInline(const ExecutableKey&) const { return {}; }
  // Ends the session's lease there: its steps are cancelled, its executables freed. Does not throw.
  virtual void CloseSession(uint64_t session) = 0;
  // Drops the resources of a container.
  virtual void ResetContainer(const std::string& container) = 0;
};

class ClusterView {
 public:
  virtual ~ClusterView() = default;
  // The task whose devices take ops that name no task: the session's own or its target's.
  virtual DeviceName default_task() const = 0;
  // Every task there is.
  virtual std::vector<DeviceName> tasks() const = 0;
  // Connects where needed and waits for a task that is not up yet, saying who is missing every 10 s. Throws
  // NotFoundError for a task that the cluster does not have, DeadlineExceededError, UnavailableError.
  virtual std::shared_ptr<TaskClient> Connect(const DeviceName& task,
                                              std::chrono::steady_clock::time_point deadline) = 0;
};

using ClusterViewFactory = std::function<std::unique_ptr<ClusterView>(const std::string& target, const SessionConfig&)>;

// Filled once at start by the explicit registration list.
class SessionFactories {
 public:
  static SessionFactories& Global();
  // For targets that begin with `scheme` ("grpc://").
  void Register(const std::string& scheme, ClusterViewFactory factory);
  // Throws NotFoundError "No session factory registered for the given session options: {target: ...}".
  std::unique_ptr<ClusterView> Make(const std::string& target, const SessionConfig& config) const;

 private:
  std::map<std::string, ClusterViewFactory> factories_;
};

// A task of this process, without any hop. `devices` are shared with whoever else runs there.
class LocalTask : public TaskClient {
 public:
  // Makes what sends an executable's values to other tasks; called by Register, so it may wait and throw. Null if there
  // are no other tasks.
  using SenderMaker = std::function<std::unique_ptr<ValueSender>(const ExecutableSpec&)>;

  LocalTask(std::string name, std::shared_ptr<const DeviceSet> devices, std::shared_ptr<TaskResources> resources,
            SenderMaker make_sender = nullptr);
  ~LocalTask() override;

  const std::string& name() const override { return name_; }
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

  const std::string name_;
  const std::shared_ptr<const DeviceSet> devices_;
  const std::shared_ptr<TaskResources> resources_;
  const SenderMaker make_sender_;
  std::vector<DeviceAttributes> attributes_;
  mutable Mutex mu_;
  std::map<ExecutableKey, std::shared_ptr<Executable>> executables_ GUARDED_BY(mu_);
  Status ended_ GUARDED_BY(mu_);  // why, once CloseAll was called
};

}  // namespace cohort
