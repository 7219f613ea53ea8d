// LocalTask: a task of this process, with the executables that sessions have registered on it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/runtime/task_client.h"

namespace cohort {

// A task whose steps run in this process. A session without a target owns one, and each server owns one. The devices
// may be shared with other objects. Thread-safe. The destructor calls CloseAll. CloseSession, CloseAll and the
// destructor cancel the steps that are running, and wait until the steps have ended. They wait at most 60 s for each
// executable; then they log the steps that have not ended and go on. A step that StartStep has started keeps its
// executable until the step has ended. The argument `self` of the constructor is the name of the task and the
// incarnation of this process. Register uses it as the client of an executable whose spec names no client.
class LocalTask : public TaskClient {
 public:
  // A function that returns the object that sends values of an executable to other tasks. Register calls the function,
  // which may wait and may throw. The function is empty if there are no other tasks.
  using SenderMaker = std::function<std::unique_ptr<ValueSender>(const ExecutableSpec&)>;

  LocalTask(ClientId self, std::shared_ptr<const DeviceSet> devices, std::shared_ptr<TaskResources> resources,
            SenderMaker make_sender = nullptr);
  ~LocalTask() override;

  const std::string& name() const override { return self_.task; }
  const std::vector<DeviceAttributes>& devices() const override { return attributes_; }
  void Register(ExecutableSpec spec) override;
  void StartStep(const ExecutableKey& key, const StepStart& step, std::vector<Tensor> args, Executor::Mode mode,
                 StepDone done) override;
  void CancelStep(const ExecutableKey& key, int64_t step, const Status& why) override;
  StepReport AskAboutStep(const ExecutableKey& key, int64_t step, bool with_stacks,
                          std::chrono::steady_clock::time_point deadline) override;
  std::weak_ptr<Executable> FindInline(const ExecutableKey& key) const override;
  void DropNext(const ExecutableKey& key) const override;
  void CloseSession(uint64_t session) override;
  void ResetContainer(const std::string& container) override;

  // Gives the executable a value of `step` that another task has sent. Ignores the value if the executable does not
  // exist (any more). Throws what Executable::Deliver throws.
  void Deliver(const ExecutableKey& key, int64_t step, EdgeId edge, const Tensor& value);
  // Returns the executable, or null if the task does not have it.
  std::shared_ptr<Executable> Find(const ExecutableKey& key) const;
  // Cancels all steps of the executables whose signature has a partition on `task`. Steps of these executables that
  // start later fail with `why`.
  void TaskLost(const std::string& task, const Status& why);
  // Ends all sessions: cancels their steps with `why` and removes their executables. Steps of these executables that
  // start later fail with UnavailableError.
  void CloseAll(const Status& why);
  // Returns one line for each step that is running or for which a value has come.
  std::vector<std::string> DescribeSteps() const;
  // Returns the steps that have started and not ended. Waits for no kernel, and costs some microseconds for each step.
  // Remembers the stamps, so that the next call can tell the time of the last progress.
  std::vector<RunningStep> RunningSteps() COHORT_EXCLUDES(mu_, seen_mu_);
  size_t num_executables() const;
  // A session that has executables here.
  struct SessionHere {
    std::string client;  // the full name of the task whose master has the session
    int64_t executables = 0;
  };
  // Returns the sessions by their numbers.
  std::map<uint64_t, SessionHere> Sessions() const;
  // Returns how many steps have ended on this task, also of sessions that are closed. It only grows.
  int64_t num_steps() const;
  ResourceManager& resources() const { return resources_->resources; }
  const std::shared_ptr<const DeviceSet>& device_set() const { return devices_; }

 private:
  // Returns the text of the errors after CloseAll.
  std::string HasEnded() const COHORT_REQUIRES(mu_);
  // Returns the error for a step whose executable does not exist.
  Status UnknownExecutable(const ExecutableKey& key) const;
  void CloseExecutables(const std::function<bool(const ExecutableKey&)>& which, const Status& why);

  const ClientId self_;
  const std::shared_ptr<const DeviceSet> devices_;
  const std::shared_ptr<TaskResources> resources_;
  const SenderMaker make_sender_;
  std::vector<DeviceAttributes> attributes_;
  mutable Mutex mu_;
  std::map<ExecutableKey, std::shared_ptr<Executable>> executables_ COHORT_GUARDED_BY(mu_);
  Status ended_ COHORT_GUARDED_BY(mu_);  // the reason, if CloseAll was called

  // What RunningSteps has seen of a step. By session and number of the step.
  struct Seen {
    RunningStep::Clock::time_point since;
    RunningStep::Clock::time_point progress;
    uint64_t stamp = 0;
  };
  Mutex seen_mu_;
  std::map<std::pair<uint64_t, int64_t>, Seen> seen_ COHORT_GUARDED_BY(seen_mu_);
  int64_t closed_steps_ COHORT_GUARDED_BY(mu_) = 0;  // steps that had ended when their executable was closed
};

}  // namespace cohort
