// TaskClient: how a session's master uses one task. ClusterView: the tasks that a session can use.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/device/device.h"
#include "cohort/runtime/execution/executable.h"
#include "cohort/runtime/step_report.h"

namespace cohort {

struct SessionConfig;

// One task, in this process or in another one. LocalTask and RemoteTask implement it. Callers share it by shared_ptr.
// Thread-safe.
class TaskClient {
 public:
  using StepDone = Executable::StepDone;

  virtual ~TaskClient() = default;
  // Returns the full name of the task: "/job:ps/replica:0/task:0".
  virtual const std::string& name() const = 0;
  virtual const std::vector<DeviceAttributes>& devices() const = 0;
  // Compiles an executable on the task and keeps it there until CloseSession. Throws what the compilation throws. For
  // another process, throws also DeadlineExceededError if the task does not answer in time, and UnavailableError if the
  // task is lost. Throws AbortedError instead if the task was lost before the call but can be reached again. Then the
  // session cannot go on, and the program needs a new one.
  virtual void Register(ExecutableSpec spec) = 0;
  // Starts a step. Does not throw. Calls `done` once, on any thread, perhaps before StartStep returns: when the step
  // has ended, when the task is lost, or when the step was cancelled.
  virtual void StartStep(const ExecutableKey& key, const StepStart& step, std::vector<Tensor> args, Executor::Mode mode,
                         StepDone done) = 0;
  // Cancels a step that has failed elsewhere, or whose time is over. If the step has ended here, only tells the task's
  // resources that it has failed (Resource::OnStepFailed). In this process, `done` of StartStep is called when the
  // step has ended. For another process it is called at once, because the task may not answer.
  virtual void CancelStep(const ExecutableKey& key, int64_t step, const Status& why) = 0;
  // Returns what the task does for a step. Waits for no kernel of the step, and at most until `deadline` for the answer
  // of another process; if there is none, the report says so. If `with_stacks`, the task takes the stacks of its
  // threads, for which it may take two seconds. Does not throw.
  virtual StepReport AskAboutStep(const ExecutableKey& key, int64_t step, bool with_stacks,
                                  std::chrono::steady_clock::time_point deadline) = 0;
  // Returns whether AskAboutStep asks another process.
  virtual bool is_remote() const { return false; }
  // Returns the executable if it is in this process and runs_inline() is true. Then the caller can run the steps itself
  // (RunInline). Otherwise returns an empty pointer.
  virtual std::weak_ptr<Executable> FindInline(const ExecutableKey&) const { return {}; }
  // Ends the session on the task: cancels its steps and frees its executables. Does not throw. In this process, waits
  // until the steps have ended, but only for a limited time. For another process, sends a message and does not wait.
  virtual void CloseSession(uint64_t session) = 0;
  // Removes all resources of a container; "" is the default container. For another process, sends a message and does
  // not wait.
  virtual void ResetContainer(const std::string& container) = 0;
  // Frees the copies of feeds of a next step that did not come (StepRecordings::DropNext). Another process has none.
  virtual void DropNext(const ExecutableKey&) const {}
};

// The tasks that a session can use. The SignatureBuilder of the session owns it and calls it from one thread at a time.
// (Session::Reset makes one for itself.)
class ClusterView {
 public:
  virtual ~ClusterView() = default;
  // Returns the task on which nodes that name no task are placed: the task of the session's target or, without a
  // target, the session's own task.
  virtual DeviceName default_task() const = 0;
  // Returns all tasks of the cluster or, without a target, only the session's own task.
  virtual std::vector<DeviceName> tasks() const = 0;
  // Returns the task. In a cluster, connects to the task if there is no connection yet: waits until the task is up, and
  // logs the missing task every 10 s. Throws NotFoundError if the cluster has no such task, DeadlineExceededError if
  // the task is not up at `deadline`, and UnavailableError if it is lost. Without a target, throws InvalidArgumentError
  // for every task but the session's own.
  virtual std::shared_ptr<TaskClient> Connect(const DeviceName& task,
                                              std::chrono::steady_clock::time_point deadline) = 0;
};

using ClusterViewFactory = std::function<std::unique_ptr<ClusterView>(const std::string& target, const SessionConfig&)>;

// The factories of ClusterViews, by the scheme of the target. cohort/registration.h fills it once at the start. After
// that it never changes, and any thread may read it.
class SessionFactories {
 public:
  static SessionFactories& Global();
  // Registers the factory for targets that begin with `scheme`, such as "grpc://". Replaces an earlier factory for
  // the same scheme.
  void Register(const std::string& scheme, ClusterViewFactory factory);
  // Returns a new view for `target`. "" means new devices in this process, for this session alone. Throws NotFoundError
  // "No session factory registered for the given session options: {target: ...}" if no scheme fits. Throws also what
  // the factory, or the making of devices, throws.
  std::unique_ptr<ClusterView> Make(const std::string& target, const SessionConfig& config) const;

 private:
  std::map<std::string, ClusterViewFactory> factories_;
};

}  // namespace cohort
