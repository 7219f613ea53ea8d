// TaskClient: how the master of a session reaches one task. ClusterView: the tasks that a session's target stands for.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/runtime/execution/executable.h"

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

}  // namespace cohort
